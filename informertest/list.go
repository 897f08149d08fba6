package informertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirador-k8s/mirador/object"
)

// page is the position at which a list continues: the content of a continue token.
type page struct {
	APIVersion string `json:"v"`
	// Version is the list's version; -1 asks for the newest.
	Version int64  `json:"rv"`
	Start   string `json:"start"`
}

const pageAPIVersion = "meta.k8s.io/v1"

func (p page) encode() string {
	b, _ := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodePage(token string) (page, error) {
	var p page
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil && (p.APIVersion != pageAPIVersion || p.Version == 0 || p.Start == "") {
		err = fmt.Errorf("version, resource version and start must be set")
	}
	if err != nil {
		return p, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	return p, nil
}

// listOptions parses the query of a list or a watch and checks the combination of its parameters.
func (c *call) listOptions() (*internalversion.ListOptions, error) {
	q := c.req.Query
	o := &internalversion.ListOptions{
		Watch:                c.req.Verb == "watch",
		ResourceVersion:      q.Get("resourceVersion"),
		ResourceVersionMatch: metav1.ResourceVersionMatch(q.Get("resourceVersionMatch")),
		Continue:             q.Get("continue"),
		AllowWatchBookmarks:  q.Get("allowWatchBookmarks") == "true" || q.Get("allowWatchBookmarks") == "1",
	}
	if v := q.Get("sendInitialEvents"); v != "" {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("sendInitialEvents %q: %v", v, err))
		}
		o.SendInitialEvents = &b
	}
	for name, to := range map[string]*int64{"limit": &o.Limit, "timeoutSeconds": nil} {
		v := q.Get(name)
		if v == "" {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s %q: %v", name, v, err))
		}
		if to == nil {
			o.TimeoutSeconds = &n
		} else {
			*to = n
		}
	}
	if errs := validation.ValidateListOptions(o, !c.fault.RefuseInitialEvents); len(errs) > 0 {
		return nil, invalidOptions(errs)
	}
	return o, nil
}

// versionOf parses a resourceVersion; "" and "0" are 0.
func versionOf(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", text, err))
	}
	return v, nil
}

func (c *call) list() error {
	o, err := c.listOptions()
	if err != nil {
		return err
	}
	sel, err := c.selection()
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	version, start, limit, err := c.where(o)
	var entries []*entry
	if err == nil {
		entries = c.s.history.list(c.res, version)
	}
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	p := cutPage(entries, sel, start, limit, version)
	p.resource, p.broken = c.res, c.fault.Undecodable
	c.w.Header().Set("Content-Type", c.form.mediaType())
	c.w.WriteHeader(http.StatusOK)
	if c.fault.GarbageFrame > 0 {
		c.w.Write(c.form.garbageFrame())
		return nil
	}
	if err := p.write(c.w, c.form); err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// where returns the version at which a list reads, the key it starts at and how many objects it may return. The lock
// is held.
func (c *call) where(o *internalversion.ListOptions) (version uint64, start object.Key, limit int64, err error) {
	h := &c.s.history
	asked, err := versionOf(o.ResourceVersion)
	if err != nil {
		return 0, "", 0, err
	}
	if o.Continue != "" {
		if asked != 0 {
			return 0, "", 0, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		p, err := decodePage(o.Continue)
		if err != nil {
			return 0, "", 0, err
		}
		if p.Version < 0 {
			return h.version, object.Key(p.Start), o.Limit, nil
		}
		if uint64(p.Version) < h.compacted {
			return 0, "", 0, continueExpired(p)
		}
		if uint64(p.Version) > h.version {
			return 0, "", 0, tooLarge(uint64(p.Version), h.version)
		}
		return uint64(p.Version), object.Key(p.Start), o.Limit, nil
	}
	if asked > h.version {
		return 0, "", 0, tooLarge(asked, h.version)
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		o.ResourceVersionMatch == "" && o.Limit > 0 && asked > 0
	if exact {
		if asked < h.compacted {
			return 0, "", 0, tooOld(asked, h.compacted)
		}
		return asked, "", o.Limit, nil
	}
	limit = o.Limit
	if o.ResourceVersion == "0" {
		// The API server's watch cache answers this request, and the cache does not support pages.
		limit = 0
	}
	version, err = c.stale(h.version)
	return version, "", limit, err
}

// continueExpired returns the error for a list that cannot continue at its version, with a token to continue at the
// newest one.
func continueExpired(p page) error {
	p.Version = -1
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list " +
		"result. You can start a new list without the continue parameter, or use the continue token in this " +
		"response to retrieve the remainder of the results.")
	err.ErrStatus.ListMeta.Continue = p.encode()
	return err
}

// cutPage selects what a list returns and where it continues.
func cutPage(entries []*entry, sel selection, start object.Key, limit int64, version uint64) *listPage {
	from, _ := slices.BinarySearchFunc(entries, start, func(e *entry, k object.Key) int {
		if e.key < k {
			return -1
		} else if e.key > k {
			return 1
		}
		return 0
	})
	p := &listPage{meta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(version, 10)}}
	var rest int64
	for _, e := range entries[from:] {
		if !sel.matches(e) {
			continue
		}
		if limit > 0 && int64(len(p.items)) == limit {
			rest++
			continue
		}
		p.items = append(p.items, e)
	}
	if rest > 0 {
		last := p.items[len(p.items)-1].key
		p.meta.Continue = page{APIVersion: pageAPIVersion, Version: int64(version), Start: string(last) + "\x00"}.encode()
		if sel.whole() {
			p.meta.RemainingItemCount = &rest
		}
	}
	return p
}
