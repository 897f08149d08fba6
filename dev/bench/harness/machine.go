package harness

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes where figures were measured.
type Machine struct {
	Go, Platform, Processor string
	Cores                   int
	MemoryGiB               int
}

// ThisMachine describes the current machine.
func ThisMachine() Machine {
	return Machine{
		Go:        runtime.Version(),
		Platform:  runtime.GOOS + "/" + runtime.GOARCH,
		Cores:     runtime.GOMAXPROCS(0),
		Processor: procField("/proc/cpuinfo", "model name"),
		MemoryGiB: memoryGiB(),
	}
}

// procField returns the value of a "name : value" line, or "".
func procField(file, name string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func memoryGiB() int {
	kib, _ := strconv.Atoi(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"))
	return (kib + 1<<19) >> 20
}
