// A function that is called by the protocol of composition functions, and is hostile in the call.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"

	v1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
)

// Where the control plane connects to functions.
const address = ":9443"

type server struct {
	v1.UnimplementedFunctionRunnerServiceServer
	call func(*v1.RunFunctionResponse)
}

func (s *server) RunFunction(_ context.Context, request *v1.RunFunctionRequest) (*v1.RunFunctionResponse, error) {
	response := &v1.RunFunctionResponse{Meta: &v1.ResponseMeta{Tag: request.GetMeta().GetTag()}, Desired: request.GetDesired()}
	s.call(response)
	return response, nil
}

func serve(call func(*v1.RunFunctionResponse)) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s := grpc.NewServer()
	v1.RegisterFunctionRunnerServiceServer(s, &server{call: call})
	fmt.Println("serves")
	fmt.Println(s.Serve(listener))
}

// Tries a kind of things in every call, and answers with a result that is fatal: what was tried, and the errors.
func serveAttempts(try func()) {
	var one sync.Mutex
	serve(func(response *v1.RunFunctionResponse) {
		one.Lock()
		defer one.Unlock()
		tried = nil
		try()
		message := strings.Join(tried, "; ")
		response.Results = []*v1.Result{{Severity: v1.Severity_SEVERITY_FATAL, Message: message}}
	})
}

// Uses all processors, and never answers.
func serveBurning() {
	serve(func(*v1.RunFunctionResponse) {
		for range 4 * runtime.NumCPU() {
			go func() {
				for {
				}
			}()
		}
		select {}
	})
}

// Works, but does not end when it is asked to.
func serveStubbornly() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	serve(func(*v1.RunFunctionResponse) {})
}
