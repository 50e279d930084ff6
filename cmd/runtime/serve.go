package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
	"parley/cmd/runtime/config"
	"parley/cmd/runtime/pluginbuild"
	"parley/host"
	"parley/host/guest"
)

func (a *app) serveCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "serve -f FILE",
		Short: "Run the plugins of a file, and do the housekeeping of its namespace",
		Long: `Run the plugins of a file, and do the housekeeping of its namespace: retries, timers, transmission, dead hosts.

Every module is checked and compiled first; a bad one ends it with exit 2 before anything is changed. Then the file is
applied as apply does, one line "ready" is printed, and messages are handled until SIGTERM or an interrupt: what runs then
is finished, the rest is given back uncounted, and it exits with 0. A file without plugins only keeps house.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, opt, err := a.load(file)
			if err != nil {
				return err
			}
			s := &server{app: a, file: f, opt: opt, log: slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))}
			s.opt.log = s.log.Warn
			return s.run(cmd)
		},
	}
	fileFlag(cmd, &file)
	return cmd
}

// server is one run of serve.
type server struct {
	app     *app
	file    *config.File
	opt     connectOptions
	log     *slog.Logger
	plugins []host.PluginConfig
	looks   looks
}

// run goes through the phases in the order that is promised: nothing is applied before every module has loaded.
func (s *server) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	defer s.unload()
	if err := s.load(ctx); err != nil {
		return err
	}
	c, err := s.app.connect(ctx, s.opt)
	if err != nil {
		return err
	}
	defer c.close()
	s.looks.through(c)
	if err := s.queuesExist(ctx, c); err != nil {
		return err
	}
	tel, err := s.telemetry(ctx, c)
	if err != nil {
		return err
	}
	defer s.endTelemetry(tel)
	if _, err := apply(ctx, c, s.file, false); err != nil {
		return err
	}
	cfg := s.config(c)
	cfg.Observer = tel.Observer()
	h, err := host.New(cfg)
	if err != nil {
		return usage("%v", err)
	}
	tel.Watch(h.Monitors)
	p := publisher{hosts: c.hosts, name: cfg.Name, monitors: h.Monitors, log: s.log}
	defer p.start(ctx)()
	fmt.Fprintln(cmd.OutOrStdout(), "ready")
	return s.runWatched(ctx, c, h)
}

// runWatched runs the host until ctx ends, or the Redis user loses a right that it needs.
func (s *server) runWatched(ctx context.Context, c *client, h *host.Host) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var lost error
	var watch sync.WaitGroup
	watch.Go(func() {
		if lost = c.rights.WatchRights(ctx); lost != nil {
			s.log.Error("the host ends: it may not do any more what it must", slog.String("error", s.app.hide(lost.Error())))
			end()
		}
	})
	err := h.Run(ctx)
	end()
	watch.Wait()
	if lost != nil {
		return lost
	}
	return err
}

// load reads, builds and compiles every module.
func (s *server) load(ctx context.Context) error {
	cache := cacheFolder(s.file.Host.Cache)
	for i := range s.file.Plugins {
		p := &s.file.Plugins[i]
		code, err := moduleOf(ctx, s.file.Path(p.Source))
		if err != nil {
			return s.file.Refuse(err, "plugins", i, "source")
		}
		o := guestOptions(p)
		o.CacheDir, o.Log, o.Peeker, o.Retainer = cache, s.log, &s.looks, &s.looks
		loaded, err := guest.Load(ctx, code, o)
		if err != nil {
			return s.file.Refuse(err, "plugins", i, "source")
		}
		s.plugins = append(s.plugins, host.PluginConfig{
			Name: p.Name, Queue: p.Queue, Runner: loaded, MaxReaders: maxReaders(p.MaxReaders), Top: stated(p.Top),
		})
	}
	return nil
}

// maxReaders tells a stated 0, which starts nothing, from nothing stated, which is the default.
func maxReaders(n *int) int {
	if n != nil && *n == 0 {
		return host.NoReaders
	}
	return stated(n)
}

// unload frees what was loaded. It has its own time: the context of the run has ended.
func (s *server) unload() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, p := range s.plugins {
		if err := p.Runner.Close(ctx); err != nil {
			s.log.Warn("a plugin did not close", slog.String("plugin", p.Name), slog.Any("error", err))
		}
	}
}

// queuesExist refuses a plugin on a queue that neither the file nor the namespace has, before anything is applied.
func (s *server) queuesExist(ctx context.Context, c *client) error {
	own := map[string]bool{}
	for _, q := range s.file.Queues {
		own[q.Name] = true
	}
	for i, p := range s.file.Plugins {
		if own[p.Queue] {
			continue
		}
		_, err := c.admin.Queue(ctx, p.Queue)
		if errors.Is(err, broker.ErrUnknownEntity) {
			err = s.file.Refuse(fmt.Errorf("queue %q is neither in this file nor in namespace %s", p.Queue, s.opt.namespace), "plugins", i, "queue")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) config(c *client) host.Config {
	cfg := host.Config{
		Name: hostName(), Readers: c.readers, Waker: c.waker, Keeper: c.keeper, Plugins: s.plugins, Log: s.log,
		Lease: time.Duration(stated(s.file.Host.Lease)),
		Restore: func(ctx context.Context) error {
			_, err := apply(ctx, c, s.file, false)
			return err
		},
	}
	if d := s.file.Host.Drain; d != nil {
		cfg.Drain = time.Duration(*d)
		if *d == 0 {
			cfg.Drain = -1 // the host's way to say: not at all
		}
	}
	return cfg
}

// hostName names this process to people who look at Redis.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		name = "host"
	}
	return fmt.Sprintf("%s:%d", name, os.Getpid())
}

// moduleOf reads a .wasm file, or builds a folder.
func moduleOf(ctx context.Context, source string) ([]byte, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, fmt.Errorf("source %s: there is no such file or folder", source)
	}
	if info.IsDir() {
		return pluginbuild.Compile(ctx, source)
	}
	code, err := os.ReadFile(source)
	if err != nil {
		return nil, fmt.Errorf("source %s cannot be read: %w", source, err)
	}
	return code, nil
}

// cacheFolder is where compiled code is kept: as stated, else below the user's cache folder, else nowhere.
func cacheFolder(stated string) string {
	if stated != "" {
		return stated
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "parley")
}
