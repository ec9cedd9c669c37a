package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"time"

	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
	"github.com/google/certificate-transparency-go/x509util"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
)

// instance is a Sigstore of our own: the log of signatures and the authority for timestamps are those of sigstore-go's
// virtual one. The certificate authority is beside it, because that one does not list its certificates in a log.
type instance struct {
	*ca.VirtualSigstore
	authority    *x509.Certificate
	authorityKey *ecdsa.PrivateKey
	certificates *ecdsa.PrivateKey
	trusted      *root.TrustedRoot
}

const (
	subject = "dev@example.org"
	issuer  = "https://issuer.example.org"
)

func newInstance() *instance {
	virtual := must(ca.NewVirtualSigstore())
	top, topKey, err := ca.GenerateRootCa()
	check(err)
	authority, authorityKey, err := ca.GenerateFulcioIntermediate(top, topKey)
	check(err)
	made := &instance{VirtualSigstore: virtual, authority: authority, authorityKey: authorityKey}
	made.certificates = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	now := time.Now()
	authorities := append(virtual.FulcioCertificateAuthorities(), &root.FulcioCertificateAuthority{
		Root: top, Intermediates: []*x509.Certificate{authority}, URI: "https://fulcio.example.org",
		ValidityPeriodStart: now.Add(-time.Hour), ValidityPeriodEnd: now.Add(time.Hour),
	})
	logs := virtual.RekorLogs()
	for id, log := range logs {
		log.ID = must(hex.DecodeString(id))
	}
	made.trusted = must(root.NewTrustedRoot(
		root.TrustedRootMediaType01, authorities, map[string]*root.TransparencyLog{
			hex.EncodeToString(keyID(made.certificates.Public())): {
				BaseURL: "https://certificates.example.org", ID: keyID(made.certificates.Public()),
				ValidityPeriodStart: now.Add(-time.Hour), ValidityPeriodEnd: now.Add(time.Hour),
				HashFunc: crypto.SHA256, PublicKey: made.certificates.Public(), SignatureHashFunc: crypto.SHA256,
			},
		}, virtual.TimestampingAuthorities(), logs))
	return made
}

func keyID(key crypto.PublicKey) []byte {
	sum := sha256.Sum256(must(x509.MarshalPKIXPublicKey(key)))
	return sum[:]
}

// issue makes a certificate for ten minutes, with the promise of the log of certificates in it.
func (made *instance) issue(curve elliptic.Curve) (*x509.Certificate, *ecdsa.PrivateKey) {
	key := must(ecdsa.GenerateKey(curve, rand.Reader))
	// As Fulcio does: in the old form and in the new one.
	of := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1}
	extensions := []pkix.Extension{
		{Id: append(of[:8:8], 1), Value: []byte(issuer)},
		{Id: append(of[:8:8], 8), Value: must(asn1.MarshalWithParams(issuer, "utf8"))},
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), EmailAddresses: []string{subject},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(9 * time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
		ExtraExtensions: extensions,
	}
	create := func() *x509.Certificate {
		der := must(x509.CreateCertificate(rand.Reader, template, made.authority, key.Public(), made.authorityKey))
		return must(x509.ParseCertificate(der))
	}
	template.ExtraExtensions = append(template.ExtraExtensions, made.listed(create()))
	return create(), key
}

// listed is the extension with the promise of the log to list a certificate.
func (made *instance) listed(unlisted *x509.Certificate) pkix.Extension {
	stamp := &ct.SignedCertificateTimestamp{SCTVersion: ct.V1, Timestamp: uint64(time.Now().UnixMilli())}
	copy(stamp.LogID.KeyID[:], keyID(made.certificates.Public()))
	entry := ct.LogEntry{Leaf: ct.MerkleTreeLeaf{
		Version: ct.V1, LeafType: ct.TimestampedEntryLeafType,
		TimestampedEntry: &ct.TimestampedEntry{
			Timestamp: stamp.Timestamp, EntryType: ct.PrecertLogEntryType,
			PrecertEntry: &ct.PreCert{
				IssuerKeyHash:  sha256.Sum256(made.authority.RawSubjectPublicKeyInfo),
				TBSCertificate: unlisted.RawTBSCertificate,
			},
		},
	}}
	input := must(ct.SerializeSCTSignatureInput(*stamp, entry))
	stamp.Signature = ct.DigitallySigned(must(tls.CreateSignature(*made.certificates, tls.SHA256, input)))
	list := must(x509util.MarshalSCTsIntoSCTList([]*ct.SignedCertificateTimestamp{stamp}))
	return pkix.Extension{
		Id:    asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11129, 2, 4, 2},
		Value: must(asn1.Marshal(must(tls.Marshal(*list)))),
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
