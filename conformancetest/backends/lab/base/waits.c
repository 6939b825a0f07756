/*
 * Preloaded before libfaketime. libfaketime wraps the calls that wait for a
 * relative time, although it has nothing to change there as long as time runs at
 * its true speed. While its wrapper waits, a signal handler gets the true time,
 * not the shifted one: PostgreSQL, which decides in the handler of SIGALRM
 * whether a timeout is due, then never ends a statement by statement_timeout,
 * lock_timeout or deadlock_timeout if its clock is ahead. So these calls go to
 * the C library directly.
 *
 * It is compiled by tcc without any header.
 */
extern void *dlopen(const char *, int);
extern void *dlsym(void *, const char *);

static void *libc(const char *name)
{
	enum { LAZY = 1, NOLOAD = 4 };
	return dlsym(dlopen("libc.so.6", LAZY | NOLOAD), name);
}

#define DIRECT(type, name, parameters, arguments)	\
	type name parameters				\
	{						\
		static type (*f) parameters;		\
		if (!f)					\
			f = libc(#name);		\
		return f arguments;			\
	}

DIRECT(int, poll, (void *fds, unsigned long n, int ms), (fds, n, ms))
DIRECT(int, ppoll, (void *fds, unsigned long n, void *t, void *mask), (fds, n, t, mask))
DIRECT(int, select, (int n, void *r, void *w, void *e, void *t), (n, r, w, e, t))
DIRECT(int, pselect, (int n, void *r, void *w, void *e, void *t, void *mask), (n, r, w, e, t, mask))
DIRECT(int, epoll_wait, (int fd, void *events, int n, int ms), (fd, events, n, ms))
DIRECT(int, epoll_pwait, (int fd, void *events, int n, int ms, void *mask), (fd, events, n, ms, mask))
DIRECT(int, nanosleep, (void *t, void *left), (t, left))
DIRECT(int, usleep, (unsigned us), (us))
DIRECT(unsigned, sleep, (unsigned s), (s))
