package testissuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"sync"
	"time"
)

// RSAKey returns a key for RS256, always the same.
var RSAKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// Token returns a token of the issuer for alice that is valid for an hour, with changed and added claims.
func (i *Issuer) Token(keyID string, claims map[string]any) string {
	all := map[string]any{"iss": i.URL, "aud": "mirador", "sub": "alice", "iat": time.Now().Unix(),
		"exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	i.mu.Lock()
	defer i.mu.Unlock()
	return SignToken(keyID, i.keys[keyID], all)
}

// SignToken returns a JSON Web Token. A nil key makes one with the algorithm "none".
func SignToken(keyID string, key crypto.Signer, claims map[string]any) string {
	algorithm := "none"
	switch key.(type) {
	case *rsa.PrivateKey:
		algorithm = "RS256"
	case *ecdsa.PrivateKey:
		algorithm = "ES256"
	}
	text := encode(map[string]string{"alg": algorithm, "kid": keyID, "typ": "JWT"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	var signature []byte
	var err error
	switch key := key.(type) {
	case *rsa.PrivateKey:
		signature, err = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	case *ecdsa.PrivateKey:
		var r, s *big.Int
		if r, s, err = ecdsa.Sign(rand.Reader, key, sum[:]); err == nil {
			signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	}
	if err != nil {
		panic(err) // the keys are those of this package
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // claims are plain values
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// publicKey returns a key as a JSON Web Key.
func publicKey(id string, key crypto.Signer) map[string]string {
	text := base64.RawURLEncoding.EncodeToString
	switch key := key.Public().(type) {
	case *rsa.PublicKey:
		return map[string]string{"kid": id, "kty": "RSA", "use": "sig", "n": text(key.N.Bytes()),
			"e": text(big.NewInt(int64(key.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := key.Bytes() // 4, x, y
		if err != nil {
			panic(err)
		}
		return map[string]string{"kid": id, "kty": "EC", "use": "sig", "crv": "P-256", "x": text(point[1:33]),
			"y": text(point[33:])}
	}
	panic("unknown kind of key")
}
