package share_test

import (
	"fmt"
	"hash/maphash"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"

	"github.com/mirador-k8s/mirador/internal/share"
)

// filler fills objects at random with few different values, so that parts are equal.
func filler(seed int64) *randfill.Filler {
	word := func(c randfill.Continue) string { return strings.Repeat("word", c.Intn(3)) + fmt.Sprint(c.Intn(20)) }
	return randfill.NewWithSeed(seed).NilChance(0.3).NumElements(0, 3).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) { *s = word(c) },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"100m", "1Gi", "1.5", "12345678901234567890123", "0"}[c.Intn(5)])
		},
		func(o *runtime.Object, c randfill.Continue) {
			switch c.Intn(3) {
			case 0:
				*o = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: word(c)}, Data: map[string]string{word(c): word(c)}}
			case 1:
				*o = &runtime.Unknown{Raw: []byte(word(c))}
			}
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			c.Fill(&r.Raw)
			c.Fill(&r.Object)
		},
	)
}

func kinds(t *testing.T) []reflect.Type {
	var types []reflect.Type
	for _, typ := range scheme.Scheme.AllKnownTypes() {
		if !slices.Contains(types, typ) {
			types = append(types, typ)
		}
	}
	if len(types) < 300 {
		t.Fatalf("the scheme has %d types only", len(types))
	}
	slices.SortFunc(types, func(a, b reflect.Type) int {
		return strings.Compare(a.PkgPath()+a.Name(), b.PkgPath()+b.Name())
	})
	return types
}

func TestP15_EveryKindIsReturnedUnchanged(t *testing.T) {
	table := share.NewTable()
	type stored struct {
		shared, want any
		uses         share.Uses
	}
	var all []stored
	seeds := 2
	if share.UnderRace {
		seeds = 1
	}
	for number, typ := range kinds(t) {
		for seed := range seeds {
			obj := reflect.New(typ).Interface().(runtime.Object)
			filler(int64(number*10 + seed)).Fill(obj)
			for _, owned := range []bool{true, false, true, false} {
				in := obj.DeepCopyObject()
				before := bits(in)
				out, uses := table.Share(in, owned)
				if !reflect.DeepEqual(out, obj) {
					t.Fatalf("%v, seed %d, owned %v: shared object differs at %s", typ, seed, owned, share.Diff(out, obj))
				}
				if !share.Equal(out, obj) || share.Hash(out) != share.Hash(obj) || share.Diff(out, obj) != "" {
					t.Fatalf("%v, seed %d, owned %v: Equal %v, Diff %q", typ, seed, owned, share.Equal(out, obj),
						share.Diff(out, obj))
				}
				if at := roomy(reflect.ValueOf(out), ""); at != "" {
					t.Fatalf("%v, seed %d: the slice at %s has capacity beyond its length", typ, seed, at)
				}
				if !owned && bits(in) != before {
					t.Fatalf("%v, seed %d: an object that is not owned was written to", typ, seed)
				}
				all = append(all, stored{out, obj, uses})
			}
		}
	}
	if table.Stats().Entries == 0 {
		t.Fatal("nothing was shared")
	}
	rand.New(rand.NewSource(1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, s := range all {
		if !reflect.DeepEqual(s.shared, s.want) {
			t.Fatalf("%T changed while others were stored, at %s", s.want, share.Diff(s.shared, s.want))
		}
		table.Release(s.uses)
	}
	if s := table.Stats(); s.Objects != 0 || s.Entries != 0 || s.Uses != 0 || s.Kept != 0 {
		t.Errorf("after the last release the table still has %+v", s)
	}
}

var bitsSeed = maphash.MakeSeed()

// bits hashes an object with its addresses, lengths and capacities.
func bits(obj any) uint64 { return bitsOf(reflect.ValueOf(obj)) }

func sum(parts ...uint64) (h uint64) {
	for _, p := range parts {
		h = (h ^ p) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

func bitsOf(v reflect.Value) uint64 {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Type() == reflect.TypeFor[*time.Location]() {
			return uint64(v.Pointer())
		}
		return sum(uint64(v.Pointer()), bitsOf(v.Elem()))
	case reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return sum(maphash.String(bitsSeed, v.Elem().Type().String()), bitsOf(v.Elem()))
	case reflect.Struct:
		x := uint64(1)
		for i := range v.NumField() {
			x = sum(x, bitsOf(v.Field(i)))
		}
		return x
	case reflect.Slice:
		x := sum(uint64(v.Pointer()), uint64(v.Len()), uint64(v.Cap()))
		for i := range v.Len() {
			x = sum(x, bitsOf(v.Index(i)))
		}
		return x
	case reflect.Map:
		x := uint64(v.Pointer())
		for it := v.MapRange(); it.Next(); {
			x += sum(bitsOf(it.Key()), bitsOf(it.Value()))
		}
		return x
	case reflect.String:
		return sum(uint64(uintptr(unsafe.Pointer(unsafe.StringData(v.String())))), maphash.String(bitsSeed, v.String()))
	default:
		return maphash.String(bitsSeed, fmt.Sprint(v))
	}
}

// roomy returns the path of a slice with capacity beyond its length, or "".
func roomy(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*resource.Quantity]() {
			return roomy(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				if at := roomy(v.Field(i), path+"."+v.Type().Field(i).Name); at != "" {
					return at
				}
			}
		}
	case reflect.Slice:
		if v.Cap() != v.Len() {
			return path
		}
		for i := range v.Len() {
			if at := roomy(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if at := roomy(it.Value(), fmt.Sprintf("%s[%v]", path, it.Key())); at != "" {
				return at
			}
		}
	}
	return ""
}
