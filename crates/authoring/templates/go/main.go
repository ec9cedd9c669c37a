// Package main is @NAME@: a composition function.
package main

import (
	"flag"
	"fmt"
	"os"

	function "github.com/crossplane/function-sdk-go"
)

func main() {
	debug := flag.Bool("debug", false, "emit debug logs")
	flag.BoolVar(debug, "d", false, "short for --debug")
	network := flag.String("network", "tcp", "the network to listen on")
	address := flag.String("address", ":9443", "the address to listen on")
	certificates := flag.String("tls-certs-dir", os.Getenv("TLS_SERVER_CERTS_DIR"), "the folder with tls.crt, tls.key and ca.crt")
	insecure := flag.Bool("insecure", false, "serve without mutual TLS")
	megabytes := flag.Int("max-recv-message-size", 4, "the largest request, in MB")
	flag.Parse()
	if err := serve(*debug, *network, *address, *certificates, *insecure, *megabytes<<20); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(debug bool, network, address, certificates string, insecure bool, maxBytes int) error {
	log, err := function.NewLogger(debug)
	if err != nil {
		return err
	}
	return function.Serve(&Function{log: log},
		function.Listen(network, address),
		function.MTLSCertificates(certificates),
		function.Insecure(insecure),
		function.MaxRecvMessageSize(maxBytes))
}
