// Command shedbolt runs a command on at most one host at a time: see README.md in
// this folder.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

// Exit codes of shedbolt's own. All others are the command's.
const (
	exitOK       = 0
	exitUsage    = 64  // bad usage
	exitStore    = 69  // the store could not decide; the command did not run
	exitLost     = 75  // the lock was lost; the command was ended, or its record was gone
	exitCannot   = 126 // the command can't be executed
	exitNotFound = 127 // the command was not found
)

// command is one word after "shedbolt".
type command struct {
	name, summary string
	run           func(args []string, stdout, stderr io.Writer) int
}

func commands() []command {
	return []command{
		{"run", "run a command under a lock", runCommand},
		{"version", "print the version", versionCommand},
	}
}

func main() { os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr)) }

func dispatch(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "--help":
		usage(stdout)
		return exitOK
	case "--version":
		return versionCommand(nil, stdout, stderr)
	}
	var known []string
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(args[1:], stdout, stderr)
		}
		known = append(known, c.name)
	}
	complain(stderr, "%q is no command; known: %s", args[0], strings.Join(known, ", "))
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, `shedbolt runs a scheduled command on at most one host at a time, by a named lock
in a store that all hosts share.

Usage:
  shedbolt COMMAND [flags]

Commands:
`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprint(w, "\n\"shedbolt COMMAND --help\" says more.\n")
}

func versionCommand(_ []string, stdout, _ io.Writer) int {
	version, revision := "(unknown)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	fmt.Fprintf(stdout, "shedbolt %s%s\n", version, revision)
	return exitOK
}

// complain prints one line.
func complain(stderr io.Writer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	fmt.Fprintln(stderr, "shedbolt: "+strings.TrimPrefix(text, "shedbolt: "))
}
