// Serves packages that are signed in many ways, with the libraries of cosign and Sigstore. Prints one line of JSON: each
// package, the authority that is to vouch for it, and whether cosign thinks that it does. Ends with its standard input.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/oci"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// scenario is a package, how it is to be verified, and what must come of it.
type scenario struct {
	Name    string `json:"name"`
	Package string `json:"package"`
	// Authority is one of an ImageConfig.
	Authority map[string]any `json:"authority"`
	// Key is what the Secret holds that the authority names.
	Key string `json:"key,omitempty"`
	// Installs says whether it must be installed, Reason what the refusal must say.
	Installs bool   `json:"installs"`
	Reason   string `json:"reason,omitempty"`
	// Cosign is empty if cosign accepts it, otherwise its reason.
	Cosign string `json:"cosign"`
}

type output struct {
	TrustedRoot json.RawMessage `json:"trustedRoot"`
	Scenarios   []scenario      `json:"scenarios"`
}

func main() {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	go func() { check(http.Serve(listener, registry.New(quiet, registry.WithReferrersSupport(true)))) }()
	stand := &stand{instance: newInstance(), host: listener.Addr().String()}
	out := output{TrustedRoot: must(stand.trusted.MarshalJSON()), Scenarios: stand.scenarios()}
	for i := range out.Scenarios {
		out.Scenarios[i].Cosign = stand.judge(&out.Scenarios[i])
	}
	check(json.NewEncoder(os.Stdout).Encode(out))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// judge asks cosign. An authority is what an ImageConfig has, so its fields are read as Crossplane reads them; a signature by
// a key needs no entry in the public log.
func (stand *stand) judge(of *scenario) string {
	options := &cosign.CheckOpts{
		TrustedMaterial: stand.trusted, Offline: true, ClaimVerifier: cosign.SimpleClaimVerifier,
	}
	if of.Key != "" {
		key := must(cryptoutils.UnmarshalPEMToPublicKey([]byte(of.Key)))
		hash := hashes[of.Authority["key"].(map[string]any)["hashAlgorithm"].(string)]
		options.SigVerifier = must(signature.LoadVerifier(key, hash))
		options.IgnoreTlog = true
	}
	if keyless, is := of.Authority["keyless"].(map[string]any); is {
		for _, identity := range keyless["identities"].([]map[string]string) {
			options.Identities = append(options.Identities, cosign.Identity{
				Issuer: identity["issuer"], Subject: identity["subject"],
				IssuerRegExp: identity["issuerRegExp"], SubjectRegExp: identity["subjectRegExp"],
			})
		}
		options.IgnoreSCT, _ = keyless["insecureIgnoreSCT"].(bool)
	}
	reference := must(name.ParseReference(of.Package))
	_, attested := of.Authority["attestations"]
	options.NewBundleFormat = stand.bundled[of.Name]
	options.UseSignedTimestamps = stand.stamped[of.Name]
	verify := func() error {
		if !attested && !options.NewBundleFormat {
			_, _, err := cosign.VerifyImageSignatures(context.Background(), reference, options)
			return err
		}
		options.ClaimVerifier = cosign.IntotoSubjectClaimVerifier
		found, _, err := cosign.VerifyImageAttestations(context.Background(), reference, options)
		if err == nil && attested && !slices.ContainsFunc(found, isProvenance) {
			err = errors.New("no attestation of the type that is wanted")
		}
		return err
	}
	if err := verify(); err != nil {
		return fmt.Sprint(err)
	}
	return ""
}

// isProvenance says whether an attestation is of the type that all authorities here want.
func isProvenance(found oci.Signature) bool {
	var envelope struct{ Payload []byte }
	check(json.Unmarshal(must(found.Payload()), &envelope))
	var statement struct{ PredicateType string }
	check(json.Unmarshal(envelope.Payload, &statement))
	return statement.PredicateType == slsa
}
