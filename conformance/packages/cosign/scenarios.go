package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	gcrmutate "github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v3/pkg/oci"
	"github.com/sigstore/cosign/v3/pkg/oci/mutate"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/cosign/v3/pkg/oci/static"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	sigdsse "github.com/sigstore/sigstore/pkg/signature/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	statementType = "application/vnd.in-toto+json"
	slsa          = "https://slsa.dev/provenance/v1"
	spdx          = "https://spdx.dev/Document"
	sign          = "https://sigstore.dev/cosign/sign/v1"
)

var hashes = map[string]crypto.Hash{
	"sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512,
}

// stand makes the packages.
type stand struct {
	*instance
	host string
	made []scenario
	// Which of them have bundles, and which have a time from a timestamp only.
	bundled, stamped map[string]bool
}

func (stand *stand) scenarios() []scenario {
	stand.bundled, stand.stamped = map[string]bool{}, map[string]bool{}
	stand.keys()
	stand.keyless()
	stand.attestations()
	stand.bundles()
	return stand.made
}

// image pushes a package of its own, and returns its tag and digest.
func (stand *stand) image(named string) (string, name.Digest) {
	content := fmt.Sprintf(`apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: %[1]s}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: things.%[1]s.example.org}
spec:
  group: %[1]s.example.org
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object}}
`, named)
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	check(writer.WriteHeader(&tar.Header{Name: "package.yaml", Mode: 0o644, Size: int64(len(content))}))
	must(writer.Write([]byte(content)))
	check(writer.Close())
	layer := must(tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}))
	annotations := map[string]string{"io.crossplane.xpkg": "base"}
	image := must(gcrmutate.Append(empty.Image, gcrmutate.Addendum{Layer: layer, Annotations: annotations}))
	tag := must(name.NewTag(fmt.Sprintf("%s/%s:v1.0.0", stand.host, named)))
	check(remote.Write(tag, image))
	return tag.String(), tag.Context().Digest(must(image.Digest()).String())
}

func (stand *stand) add(made scenario) {
	stand.made = append(stand.made, made)
}

func byKey(hash string) map[string]any {
	secret := map[string]any{"name": "PLACEHOLDER", "key": "cosign.pub"}
	return map[string]any{"name": "team", "key": map[string]any{"secretRef": secret, "hashAlgorithm": hash}}
}

func byIdentity(identity map[string]string) map[string]any {
	return map[string]any{"name": "ci", "keyless": map[string]any{"identities": []map[string]string{identity}}}
}

func ignoringSCT(authority map[string]any) map[string]any {
	authority["keyless"].(map[string]any)["insecureIgnoreSCT"] = true
	return authority
}

func attesting(authority map[string]any, predicateType string) map[string]any {
	authority["attestations"] = []map[string]string{{"name": "wanted", "predicateType": predicateType}}
	return authority
}

func identity() map[string]string {
	return map[string]string{"issuer": issuer, "subject": subject}
}

// attach writes a signature beside an image, as cosign does.
func attach(digest name.Digest, made oci.Signature) {
	entity := must(ociremote.SignedEntity(digest))
	entity = must(mutate.AttachSignatureToEntity(entity, made))
	check(ociremote.WriteSignatures(digest.Repository, entity))
}

func attachAttestation(digest name.Digest, made oci.Signature) {
	entity := must(ociremote.SignedEntity(digest))
	entity = must(mutate.AttachAttestationToEntity(entity, made))
	check(ociremote.WriteAttestations(digest.Repository, entity))
}

func simple(digest name.Digest) []byte {
	return must(payload.Cosign{Image: digest}.MarshalJSON())
}

// signed is a signature of an image by a key.
func signed(digest name.Digest, signer signature.Signer) oci.Signature {
	content := simple(digest)
	made := must(signer.SignMessage(bytes.NewReader(content)))
	return must(static.NewSignature(content, base64.StdEncoding.EncodeToString(made)))
}

func publicPEM(signer signature.Signer) string {
	return string(must(cryptoutils.MarshalPublicKeyToPEM(must(signer.PublicKey()))))
}

// generated is a key pair as `cosign generate-key-pair` writes it.
func generated() signature.SignerVerifier {
	password := func(bool) ([]byte, error) { return []byte("password"), nil }
	pair := must(cosign.GenerateKeyPair(password))
	return must(cosign.LoadPrivateKey(pair.PrivateBytes, []byte("password"), nil))
}

func (stand *stand) keys() {
	key, other := generated(), generated()
	reference, digest := stand.image("key")
	attach(digest, signed(digest, key))
	stand.add(scenario{Name: "key", Package: reference, Authority: byKey("sha256"), Key: publicPEM(key), Installs: true})

	reference, _ = stand.image("unsigned")
	stand.add(scenario{Name: "unsigned", Package: reference, Authority: byKey("sha256"), Key: publicPEM(key),
		Reason: "no signature of it was found"})

	reference, digest = stand.image("other-key")
	attach(digest, signed(digest, other))
	stand.add(scenario{Name: "other-key", Package: reference, Authority: byKey("sha256"), Key: publicPEM(key),
		Reason: "a signature is not by its key"})

	reference, digest = stand.image("two-keys")
	attach(digest, signed(digest, other))
	attach(digest, signed(digest, key))
	stand.add(scenario{Name: "two-keys", Package: reference, Authority: byKey("sha256"), Key: publicPEM(key), Installs: true})

	reference, digest = stand.image("moved-signature")
	_, elsewhere := stand.image("moved-from")
	attach(digest, signed(elsewhere, key))
	stand.add(scenario{Name: "moved-signature", Package: reference, Authority: byKey("sha256"), Key: publicPEM(key),
		Reason: "a signature is for sha256:"})

	for _, algorithm := range []struct {
		name, hash string
		key        crypto.PrivateKey
	}{
		{"p256-sha224", "sha224", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
		{"p256-sha384", "sha384", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
		{"p256-sha512", "sha512", must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
		{"p384-sha384", "sha384", must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))},
		{"p384-sha512", "sha512", must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))},
		{"p521-sha512", "sha512", must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))},
		{"p521-sha256", "sha256", must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))},
		{"rsa-sha256", "sha256", must(rsa.GenerateKey(rand.Reader, 2048))},
		{"rsa-sha512", "sha512", must(rsa.GenerateKey(rand.Reader, 2048))},
		{"ed25519", "sha256", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))},
	} {
		signer := must(signature.LoadSignerVerifier(algorithm.key, hashes[algorithm.hash]))
		reference, digest := stand.image(algorithm.name)
		attach(digest, signed(digest, signer))
		stand.add(scenario{Name: algorithm.name, Package: reference, Authority: byKey(algorithm.hash),
			Key: publicPEM(signer), Installs: true})
	}
	reference, digest = stand.image("other-hash")
	signer := must(signature.LoadSignerVerifier(must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), crypto.SHA256))
	attach(digest, signed(digest, signer))
	stand.add(scenario{Name: "other-hash", Package: reference, Authority: byKey("sha512"), Key: publicPEM(signer),
		Reason: "a signature is not by its key"})
}

// logged is the annotation of cosign with the entry of the log.
func (made *instance) logged(body []byte, at time.Time) *bundle.RekorBundle {
	content := tlog.RekorPayload{
		Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: at.Unix(), LogIndex: 42, LogID: must(made.RekorLogID()),
	}
	return &bundle.RekorBundle{SignedEntryTimestamp: must(made.RekorSignPayload(content)), Payload: bundle.RekorPayload{
		Body: content.Body, IntegratedTime: content.IntegratedTime, LogIndex: content.LogIndex, LogID: content.LogID,
	}}
}

// keylessSigned is a signature by a certificate, logged at a time.
func (by *instance) keylessSigned(digest name.Digest, certificate *x509.Certificate, key crypto.PrivateKey, at time.Time) oci.Signature {
	content := simple(digest)
	signer := must(signature.LoadSigner(key, crypto.SHA256))
	made := must(signer.SignMessage(bytes.NewReader(content)))
	pem := must(cryptoutils.MarshalCertificateToPEM(certificate))
	sum := sha256.Sum256(content)
	body := must(json.Marshal(map[string]any{"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": map[string]any{
		"data":      map[string]any{"hash": map[string]any{"algorithm": "sha256", "value": hex.EncodeToString(sum[:])}},
		"signature": map[string]any{"content": made, "publicKey": map[string]any{"content": pem}},
	}}))
	chain := must(cryptoutils.MarshalCertificateToPEM(by.authority))
	return must(static.NewSignature(content, base64.StdEncoding.EncodeToString(made),
		static.WithCertChain(pem, chain), static.WithBundle(by.logged(body, at))))
}

func (stand *stand) keyless() {
	now := time.Now()
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
		named := fmt.Sprintf("keyless-%d", curve.Params().BitSize)
		reference, digest := stand.image(named)
		certificate, key := stand.issue(curve)
		attach(digest, stand.keylessSigned(digest, certificate, key, now))
		stand.add(scenario{Name: named, Package: reference, Authority: byIdentity(identity()), Installs: true})
	}
	for _, one := range []struct {
		name     string
		identity map[string]string
		installs bool
	}{
		{"by-expression", map[string]string{"issuerRegExp": `^https://issuer\.`, "subjectRegExp": `@example\.org$`}, true},
		{"other-subject", map[string]string{"issuer": issuer, "subject": "else@example.org"}, false},
		{"other-issuer", map[string]string{"issuer": "https://issuer", "subject": subject}, false},
		{"anchored", map[string]string{"issuer": issuer, "subjectRegExp": `^example\.org$`}, false},
	} {
		reference, digest := stand.image(one.name)
		certificate, key := stand.issue(elliptic.P256())
		attach(digest, stand.keylessSigned(digest, certificate, key, now))
		stand.add(scenario{Name: one.name, Package: reference, Authority: byIdentity(one.identity), Installs: one.installs,
			Reason: "none of its identities matches"})
	}
	reference, digest := stand.image("expired")
	certificate, key := stand.issue(elliptic.P256())
	attach(digest, stand.keylessSigned(digest, certificate, key, now.Add(20*time.Minute)))
	stand.add(scenario{Name: "expired", Package: reference, Authority: byIdentity(identity()), Reason: "it had expired"})

	for named, ignored := range map[string]bool{"not-listed": false, "not-listed-ignored": true} {
		reference, digest := stand.image(named)
		certificate, private, err := stand.GenerateLeafCert(subject, issuer)
		check(err)
		attach(digest, stand.keylessSigned(digest, certificate, private, now.Add(5*time.Minute)))
		authority := byIdentity(identity())
		if ignored {
			authority = ignoringSCT(authority)
		}
		stand.add(scenario{Name: named, Package: reference, Authority: authority, Installs: ignored,
			Reason: "has no timestamp (SCT)"})
	}
	reference, digest = stand.image("stranger")
	strange := newInstance()
	certificate, key = strange.issue(elliptic.P256())
	attach(digest, stand.keylessSigned(digest, certificate, key, now))
	stand.add(scenario{Name: "stranger", Package: reference, Authority: byIdentity(identity()), Reason: "is not trusted at"})

	reference, digest = stand.image("strange-log")
	certificate, key = stand.issue(elliptic.P256())
	strange.authority = stand.authority
	attach(digest, strange.keylessSigned(digest, certificate, key, now))
	stand.add(scenario{Name: "strange-log", Package: reference, Authority: byIdentity(identity()),
		Reason: "the trust root has no transparency log"})
}

// enveloped is a signed statement about an image.
func enveloped(digest name.Digest, predicateType string, signer signature.Signer) *dsse.Envelope {
	statement := must(json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": predicateType, "predicate": map[string]any{},
		"subject": []any{map[string]any{"name": digest.Repository.String(), "digest": map[string]string{
			"sha256": digest.DigestStr()[len("sha256:"):],
		}}},
	}))
	wrapped := must(dsse.NewEnvelopeSigner(&sigdsse.SignerAdapter{SignatureSigner: signer}))
	return must(wrapped.SignPayload(context.Background(), statementType, statement))
}

func (stand *stand) attestations() {
	key := generated()
	for named, found := range map[string]string{"attested": slsa, "attested-otherwise": spdx} {
		reference, digest := stand.image(named)
		envelope := must(json.Marshal(enveloped(digest, found, key)))
		attachAttestation(digest, must(static.NewAttestation(envelope)))
		authority := attesting(byKey("sha256"), "slsaprovenance1")
		stand.add(scenario{Name: named, Package: reference, Authority: authority, Key: publicPEM(key), Installs: found == slsa,
			Reason: "no attestation of type slsaprovenance1 found"})
	}
	reference, digest := stand.image("keyless-attested")
	certificate, private := stand.issue(elliptic.P256())
	envelope := enveloped(digest, slsa, must(signature.LoadSigner(private, crypto.SHA256)))
	made := must(base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig))
	entry := must(stand.GenerateTlogEntry(certificate, envelope, made, time.Now().Unix(), false))
	raw := must(base64.StdEncoding.DecodeString(entry.Body().(string)))
	pem := must(cryptoutils.MarshalCertificateToPEM(certificate))
	chain := must(cryptoutils.MarshalCertificateToPEM(stand.authority))
	attachAttestation(digest, must(static.NewAttestation(must(json.Marshal(envelope)),
		static.WithCertChain(pem, chain), static.WithBundle(stand.logged(raw, time.Now())))))
	stand.add(scenario{Name: "keyless-attested", Package: reference, Authority: attesting(byIdentity(identity()), slsa),
		Installs: true})
}

// bundled is a Sigstore bundle.
func bundled(envelope *dsse.Envelope, material *protobundle.VerificationMaterial) []byte {
	made := &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json", VerificationMaterial: material,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: must(base64.StdEncoding.DecodeString(envelope.Payload)), PayloadType: envelope.PayloadType,
			Signatures: []*protodsse.Signature{{Sig: must(base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig))}},
		}},
	}
	return must(protojson.Marshal(made))
}

func certified(certificate *x509.Certificate, entry *tlog.Entry) *protobundle.VerificationMaterial {
	return &protobundle.VerificationMaterial{
		Content: &protobundle.VerificationMaterial_Certificate{
			Certificate: &protocommon.X509Certificate{RawBytes: certificate.Raw},
		},
		TlogEntries: []*protorekor.TransparencyLogEntry{entry.TransparencyLogEntry()},
	}
}

func stamps(responses ...[]byte) *protobundle.TimestampVerificationData {
	data := &protobundle.TimestampVerificationData{}
	for _, response := range responses {
		stamp := &protocommon.RFC3161SignedTimestamp{SignedTimestamp: response}
		data.Rfc3161Timestamps = append(data.Rfc3161Timestamps, stamp)
	}
	return data
}

// refer writes a bundle that refers to an image.
func (stand *stand) refer(made scenario, digest name.Digest, content []byte, predicateType string) {
	check(ociremote.WriteAttestationNewBundleFormat(digest, content, predicateType))
	stand.bundled[made.Name] = true
	stand.add(made)
}

func (stand *stand) bundles() {
	key := generated()
	reference, digest := stand.image("bundle-key")
	material := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{
		PublicKey: &protocommon.PublicKeyIdentifier{Hint: "hint"},
	}}
	stand.refer(scenario{Name: "bundle-key", Package: reference, Authority: byKey("sha256"), Key: publicPEM(key), Installs: true},
		digest, bundled(enveloped(digest, sign, key), material), sign)

	for _, one := range []struct {
		name                  string
		promise, proof, stamp bool
		late                  time.Duration
		reason                string
	}{
		{"bundle-proof", true, true, false, 0, ""},
		{"bundle-stamp", false, true, true, 0, ""},
		{"bundle-late", true, true, false, 20 * time.Minute, "it had expired"},
		{"bundle-no-time", false, true, false, 0, "no trusted time"},
	} {
		reference, digest := stand.image(one.name)
		certificate, private := stand.issue(elliptic.P256())
		envelope := enveloped(digest, sign, must(signature.LoadSigner(private, crypto.SHA256)))
		made := must(base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig))
		entry := must(stand.GenerateTlogEntry(certificate, envelope, made, time.Now().Add(one.late).Unix(), one.proof))
		material := certified(certificate, entry)
		material.TlogEntries[0].KindVersion = &protorekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
		material.TlogEntries[0].InclusionPromise = nil
		if one.promise {
			stamp := stand.logged(must(base64.StdEncoding.DecodeString(entry.Body().(string))), time.Now().Add(one.late))
			material.TlogEntries[0].LogIndex, material.TlogEntries[0].IntegratedTime = 42, stamp.Payload.IntegratedTime
			material.TlogEntries[0].InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: stamp.SignedEntryTimestamp}
		}
		if one.stamp {
			material.TimestampVerificationData = stamps(must(stand.TimestampResponse(made)))
			stand.stamped[one.name] = true
		}
		stand.refer(scenario{Name: one.name, Package: reference, Authority: byIdentity(identity()), Installs: one.reason == "",
			Reason: one.reason}, digest, bundled(envelope, material), sign)
	}
	stand.second()
}

// second is a bundle as the second version of the log makes it: without a time of its own.
func (stand *stand) second() {
	reference, digest := stand.image("bundle-v2")
	unsigned := enveloped(digest, sign, generated())
	statement := must(base64.StdEncoding.DecodeString(unsigned.Payload))
	var entity *ca.TestEntity = must(stand.AttestHashedRekordV2(subject, issuer, statement))
	entries, content := must(entity.TlogEntries()), must(entity.SignatureContent())
	certificate := must(entity.VerificationContent()).Certificate()
	material := certified(certificate, entries[0])
	material.TimestampVerificationData = stamps(must(entity.Timestamps())...)
	stand.stamped["bundle-v2"] = true
	stand.refer(scenario{Name: "bundle-v2", Package: reference, Authority: ignoringSCT(byIdentity(identity())), Installs: true},
		digest, bundled(content.EnvelopeContent().RawEnvelope(), material), sign)
}
