package identity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// tokenTable has the users of static tokens by the hash of the token: the time of a lookup says nothing about the
// tokens, and the tokens are not kept.
type tokenTable struct {
	users map[[sha256.Size]byte]*user.DefaultInfo
}

// AuthenticateToken accepts a token of the table.
func (t *tokenTable) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	found, ok := t.users[sha256.Sum256([]byte(token))]
	if !ok {
		return nil, false, nil
	}
	return &authenticator.Response{User: found}, true, nil
}

func (a *Authenticator) useStaticTokens(_ context.Context, content []byte) error {
	table, err := parseTokens(content)
	if err != nil {
		return err
	}
	a.staticTokens.Store(table)
	return nil
}

// parseTokens reads a table in the format of kube-apiserver's --token-auth-file. It refuses mistakes that
// kube-apiserver skips or takes literally: an empty or repeated token, an empty name, spaces around a group.
func parseTokens(content []byte) (*tokenTable, error) {
	const format = `write token,user,uid,"group1,group2"`
	table := &tokenTable{users: map[[sha256.Size]byte]*user.DefaultInfo{}}
	reader := csv.NewReader(bytes.NewReader(content))
	reader.FieldsPerRecord = -1
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w; %s", err, format) // says the line, and not what is in it
		}
		line, _ := reader.FieldPos(0)
		if len(record) < 3 || len(record) > 4 {
			return nil, fmt.Errorf("line %d has %d columns and needs 3 or 4; %s", line, len(record), format)
		}
		sum := sha256.Sum256([]byte(record[0]))
		found := &user.DefaultInfo{Name: record[1], UID: record[2]}
		if len(record) == 4 && record[3] != "" {
			found.Groups = strings.Split(record[3], ",")
		}
		switch {
		case strings.TrimSpace(record[0]) == "":
			return nil, fmt.Errorf("line %d has an empty token; %s", line, format)
		case strings.ContainsAny(record[0], " \t"):
			return nil, fmt.Errorf("line %d has a token with spaces, which no client can send; remove them", line)
		case strings.TrimSpace(found.Name) != found.Name || found.Name == "":
			return nil, fmt.Errorf("line %d: the user name is %q; write a name without spaces around it", line, found.Name)
		case table.users[sum] != nil:
			return nil, fmt.Errorf("line %d has the token of an earlier line; give each user a token of their own", line)
		}
		for _, group := range found.Groups {
			if strings.TrimSpace(group) != group || group == "" {
				return nil, fmt.Errorf("line %d: the groups contain %q; separate groups with a comma and no space", line, group)
			}
		}
		if err := checkReserved(found); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		table.users[sum] = found
	}
	if len(table.users) == 0 {
		return nil, fmt.Errorf("it has no tokens; %s", format)
	}
	return table, nil
}
