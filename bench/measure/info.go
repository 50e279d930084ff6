package measure

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func parseCPU(info string) (time.Duration, error) {
	var total time.Duration
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		text, err := infoField(info, name)
		if err != nil {
			return 0, err
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO field %s: %w", name, err)
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}

func parseUsedMemory(info string) (int64, error) {
	text, err := infoField(info, "used_memory")
	if err != nil {
		return 0, err
	}
	bytes, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("INFO field used_memory: %w", err)
	}
	return bytes, nil
}

func infoField(info, name string) (string, error) {
	for line := range strings.Lines(info) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("INFO has no field %s", name)
}
