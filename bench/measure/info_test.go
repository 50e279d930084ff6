package measure

import (
	"testing"
	"time"
)

const cpuInfo = "# CPU\r\nused_cpu_sys:1.250000\r\nused_cpu_user:2.500000\r\nused_cpu_sys_children:9.0\r\n" +
	"used_cpu_user_children:9.0\r\nused_cpu_sys_main_thread:7.0\r\nused_cpu_user_main_thread:7.0\r\n"

func TestParseCPUAddsUserAndSystemOfTheServerOnly(t *testing.T) {
	got, err := parseCPU(cpuInfo)
	if err != nil || got != 3750*time.Millisecond {
		t.Errorf("parseCPU = %v, %v, want 3.75s", got, err)
	}
}

func TestParseCPURefusesWhatItCannotRead(t *testing.T) {
	for _, info := range []string{"", "used_cpu_user:1\r\n", "used_cpu_user:x\r\nused_cpu_sys:1\r\n"} {
		if got, err := parseCPU(info); err == nil {
			t.Errorf("parseCPU(%q) = %v, want an error", info, got)
		}
	}
}

func TestParseUsedMemory(t *testing.T) {
	info := "# Memory\r\nused_memory_human:1.00M\r\nused_memory:1048576\r\nused_memory_rss:7\r\n"
	if got, err := parseUsedMemory(info); err != nil || got != 1048576 {
		t.Errorf("parseUsedMemory = %v, %v, want 1048576", got, err)
	}
	for _, info := range []string{"used_memory_rss:7\r\n", "used_memory:7k\r\n"} {
		if got, err := parseUsedMemory(info); err == nil {
			t.Errorf("parseUsedMemory(%q) = %v, want an error", info, got)
		}
	}
}
