// Command release makes a release of the repository it is run in:
//
//	go run ./release [-n] VERSION
//
// All modules of the repository get the same version. On the main branch a
// nested module finds the others of the repository by replace directives, which a
// consumer would ignore and go install would refuse. So their tags stand on a
// release commit beside the branch, in which those directives are gone and the
// version is required instead; the tag of the root stands on the branch itself,
// which stays as it is.
//
// Before anything is tagged, each module is tidied, vetted and tested against the
// others as a consumer would get them: without workspace and replacements, out of
// a module proxy on the file system. Then a consumer outside the repository
// builds the libraries and installs the commands. If any of it fails, nothing has
// happened. Nothing is ever pushed; the last line says what to push.
//
// With -n nothing is tagged or committed at all, the nested modules and their tests
// are compiled and neither vetted nor run, and changes that are not committed yet are no obstacle, but not
// part of it either.
//
// The file modules.txt at the root of the repository lists the directories of the
// nested modules, each after those it requires.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "release:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dry := flags.Bool("n", false, "check that all compiles and installs as a consumer gets it, and tag nothing")
	dir := flags.String("C", ".", "a directory of the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one argument, the version: v0.1.0")
	}
	return release(ctx, *dir, flags.Arg(0), *dry, stdout)
}
