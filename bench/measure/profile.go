package measure

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profile watches the timed part of a workload: a CPU profile of this process,
// and what the server's commands cost.
type profile struct {
	server *Server
	prefix string
	cpu    *os.File
}

// startProfile does nothing without a folder.
func startProfile(ctx context.Context, server *Server, folder, workload string) (*profile, error) {
	if folder == "" {
		return nil, nil
	}
	p := &profile{server: server, prefix: filepath.Join(folder, workload)}
	if err := server.client.ConfigResetStat(ctx).Err(); err != nil {
		return nil, err
	}
	file, err := os.Create(p.prefix + ".pprof")
	if err != nil {
		return nil, err
	}
	p.cpu = file
	return p, pprof.StartCPUProfile(file)
}

// end writes both files.
func (p *profile) end(ctx context.Context) error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	commands, err := p.server.client.Info(ctx, "commandstats").Result()
	if err == nil {
		err = os.WriteFile(p.prefix+".commands", []byte(commands), 0o600)
	}
	return errors.Join(err, p.cpu.Close())
}
