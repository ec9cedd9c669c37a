// A function's program that tries what it must not be able to do. It prints one line for each attempt: `NAME: refused`, or
// `NAME: SUCCEEDED` with what it got. The last attempts take all memory, processes, files and log that they can get. `serve.go` tries
// the same in calls, and answers with what was refused.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// What was tried since the call began, one text for each attempt.
var tried []string

func report(name string, got string, err error) {
	text := fmt.Sprintf("%s: SUCCEEDED %s", name, got)
	if err != nil {
		text = fmt.Sprintf("%s: refused (%v)", name, err)
	}
	fmt.Println(text)
	tried = append(tried, text)
}

func dial(name, address string) {
	c, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err == nil {
		c.Close()
	}
	report(name, address, err)
}

func refusedIf(bad bool, words string) error {
	if bad {
		return nil
	}
	return fmt.Errorf("%s", words)
}

func network(listener string) {
	dial("the host's listener", listener)
	dial("an outside address", "198.51.100.1:443")
	_, err := net.LookupHost("example.org")
	report("names", "resolved", err)
	interfaces, _ := net.Interfaces()
	report("interfaces", fmt.Sprint(interfaces), refusedIf(len(interfaces) > 1, "loopback only"))
	_, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_ICMP)
	report("raw sockets", "", err)
}

func files(secret string) {
	_, err := os.ReadFile(secret)
	report("a file of the host", secret, err)
	_, err = os.ReadFile("/proc/1/root" + secret)
	report("a file of the host through /proc", secret, err)
	report("its root", "", os.WriteFile("/written", []byte("x"), 0o644))
	report("mounts", "", syscall.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
	report("devices", "", syscall.Mknod("/tmp/sda", syscall.S_IFBLK|0o600, 8<<8))
	report("another root", "", syscall.Chroot("/tmp"))
	report("its user", "", syscall.Setuid(1234))
	report("kernel settings", "", os.WriteFile("/proc/sys/kernel/hostname", []byte("x"), 0o644))
	report("kernel log", "", func() error { _, err := syscall.Klogctl(3, make([]byte, 100)); return err }())
}

func processes(victim string) {
	seen, _ := filepath.Glob("/proc/[0-9]*")
	report("other processes", strings.Join(seen, " "), refusedIf(len(seen) > 1, "its own only"))
	pid, _ := strconv.Atoi(victim)
	err := syscall.Kill(pid, 0)
	// The number may be that of a thread of this program.
	if pid <= os.Getpid()+50 {
		err = fmt.Errorf("not tried")
	}
	report("a process of the host", victim, err)
	report("tracing", "", syscall.PtraceAttach(pid))
	report("privileges", "", func() error {
		for _, line := range lines("/proc/self/status") {
			if strings.HasPrefix(line, "CapBnd:") && !strings.HasSuffix(line, "0000000000000000") {
				return nil
			}
		}
		return fmt.Errorf("no capabilities")
	}())
}

func lines(path string) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []string
	for s := bufio.NewScanner(f); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}

func fillDisk() {
	f, err := os.Create("/tmp/large")
	written := 0
	for chunk := make([]byte, 1<<20); err == nil && written < 4096; written++ {
		_, err = f.Write(chunk)
	}
	// It stays: files that are gone are not seen.
	f.Close()
	report("4 GiB of files", "", err)
}

func forkBomb() {
	var err error
	var children []*exec.Cmd
	for count := 0; err == nil && count < 5000; count++ {
		c := exec.Command("/proc/self/exe", "sleep")
		if err = c.Start(); err == nil {
			children = append(children, c)
		}
	}
	for _, c := range children {
		c.Process.Kill()
		c.Wait()
	}
	report("5000 processes", "", err)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sleep" {
		time.Sleep(time.Hour)
	}
	mode, listener, secret, victim := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	switch mode {
	case "attempts":
		network(listener)
		files(secret)
		processes(victim)
		fillDisk()
		forkBomb()
		fmt.Println("attempts: done")
		time.Sleep(time.Hour)
	case "memory":
		var all [][]byte
		for {
			chunk := make([]byte, 16<<20)
			for i := range chunk {
				chunk[i] = 1
			}
			all = append(all, chunk)
			fmt.Println("holds", len(all)*16, "MiB")
		}
	case "log":
		for {
			fmt.Println(strings.Repeat("x", 4096))
		}
	case "network":
		serveAttempts(func() { network(listener) })
	case "files":
		serveAttempts(func() { files(secret) })
	case "processes":
		serveAttempts(func() { processes(victim) })
	case "cpu":
		serveBurning()
	case "term":
		serveStubbornly()
	case "mild":
		serve(func(*v1.RunFunctionResponse) {})
	}
}
