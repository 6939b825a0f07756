/*
 * Preloaded into a server whose clock is to be wrong: adds the seconds that the
 * environment's SHEDBOLT_CLOCK_OFFSET says to what the server reads of the time of
 * day, and takes them off the moments until which it waits. The monotonic clock and
 * all waits for a span of time stay as they are.
 *
 * libfaketime does more, and that is in the way here: it deadlocks with jemalloc,
 * which reads the clock before libfaketime has come so far; while it waits for a
 * span, PostgreSQL's signal handlers read the true time and miss their timeouts;
 * and its care for the monotonic clock makes MySQL's waits end at once. For the same
 * reasons nothing here allocates memory or runs before main.
 *
 * It is compiled by tcc without any header, for 64-bit systems.
 */
struct timespec {
	long sec, nsec;
};

extern long syscall(long number, ...);
extern char *getenv(const char *);
extern long strtol(const char *, char **, int);
extern void *dlopen(const char *, int);
extern void *dlsym(void *, const char *);

enum { REALTIME = 0, REALTIME_COARSE = 5, TAI = 11 }; /* clocks */
enum { ABSTIME = 1 };				      /* clock_nanosleep's flag */
enum { SYS_clock_gettime =
#if defined __x86_64__
	228
#elif defined __aarch64__ || defined __riscv
	113
#endif
};

static long offset(void)
{
	static long known = -1, seconds;
	if (known < 0) {
		const char *value = getenv("SHEDBOLT_CLOCK_OFFSET");
		seconds = value ? strtol(value, 0, 10) : 0;
		known = 1;
	}
	return seconds;
}

static int shifted(int clock) { return clock == REALTIME || clock == REALTIME_COARSE || clock == TAI; }

int clock_gettime(int clock, struct timespec *now)
{
	int failed = syscall(SYS_clock_gettime, clock, now);
	if (!failed && shifted(clock))
		now->sec += offset();
	return failed;
}

int timespec_get(struct timespec *now, int base)
{
	return base == 1 && clock_gettime(REALTIME, now) == 0 ? base : 0;
}

int gettimeofday(struct timespec *now, void *zone)
{
	int failed = now ? clock_gettime(REALTIME, now) : 0;
	if (now)
		now->nsec /= 1000; /* of a timeval these are microseconds */
	return failed;
}

long time(long *copy)
{
	struct timespec now;
	clock_gettime(REALTIME_COARSE, &now);
	if (copy)
		*copy = now.sec;
	return now.sec;
}

/*
 * Which clock a condition waits by is known to the C library only. But the monotonic
 * one counts from the machine's start, so that its times are far smaller; and what is
 * larger than any date means "never".
 */
static const struct timespec *until(const struct timespec *end, struct timespec *space)
{
	if (!end || end->sec < 1000000000 || end->sec > 100000000000)
		return end;
	space->sec = end->sec - offset();
	space->nsec = end->nsec;
	return space;
}

static void *libc(const char *name)
{
	enum { LAZY = 1, NOLOAD = 4 };
	return dlsym(dlopen("libc.so.6", LAZY | NOLOAD), name);
}

#define WAIT(name, parameters, arguments)			\
	int name parameters					\
	{							\
		static int (*f) parameters;			\
		struct timespec space;				\
		if (!f)						\
			f = libc(#name);			\
		return f arguments;				\
	}

#define END until(end, &space)
typedef const struct timespec *moment;

WAIT(pthread_cond_timedwait, (void *c, void *m, moment end), (c, m, END))
WAIT(pthread_cond_clockwait, (void *c, void *m, int clock, moment end), (c, m, clock, END))
WAIT(pthread_mutex_timedlock, (void *m, moment end), (m, END))
WAIT(pthread_mutex_clocklock, (void *m, int clock, moment end), (m, clock, END))
WAIT(pthread_rwlock_timedrdlock, (void *l, moment end), (l, END))
WAIT(pthread_rwlock_timedwrlock, (void *l, moment end), (l, END))
WAIT(sem_timedwait, (void *s, moment end), (s, END))
WAIT(sem_clockwait, (void *s, int clock, moment end), (s, clock, END))
WAIT(clock_nanosleep, (int clock, int flags, moment end, void *left),
     (clock, flags, flags & ABSTIME ? END : end, left))
