// Command typecheck says what the compiler would say of packages on another system:
//
//	go run ./typecheck -C ../.. -goos windows -goarch 386 work
//
// It reads the sources of the packages, of their tests and of all they import, and
// compiles nothing: go vet would compile the standard library and every dependency for
// the other system first, which from empty caches takes a minute and a half.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/tools/go/packages"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "typecheck:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("typecheck", flag.ContinueOnError)
	flags.SetOutput(stderr)
	goos := flags.String("goos", "windows", "the system")
	goarch := flags.String("goarch", "386", "the architecture")
	dir := flags.String("C", ".", "the directory that the patterns are of")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := packages.Load(&packages.Config{
		Context: ctx,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes,
		Dir:   *dir,
		Env:   append(os.Environ(), "CGO_ENABLED=0", "GOOS="+*goos, "GOARCH="+*goarch),
		Tests: true,
	}, flags.Args()...)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("no packages match %q", flags.Args())
	}
	// An error in a dependency is its own, or one of go.mod, and is reported, too.
	bad := 0
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			fmt.Fprintln(stderr, e)
			bad++
		}
	})
	if bad > 0 {
		return fmt.Errorf("%d errors for %s/%s", bad, *goos, *goarch)
	}
	return nil
}
