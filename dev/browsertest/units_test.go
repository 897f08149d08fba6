package browsertest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"testing"
)

// The modules' own tests are written for node's test runner, but node is not needed: the browser runs them, with the
// parts of node that they use replaced by a few functions.
const unitsPage = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>units</title>
<script type="importmap">{"imports": {"node:test": "/run.js", "node:assert/strict": "/assert.js"}}</script>`

const unitsRun = `
const tests = [];
export default function test(name, run) { tests.push({ name, run }); }
export async function runAll() {
	const results = [];
	for (const { name, run } of tests.splice(0)) {
		const after = [];
		let error = '';
		try { await run({ after: (f) => after.push(f) }); } catch (err) { error = String(err?.stack ?? err); }
		for (const f of after) await f();
		results.push({ name, error });
	}
	return results;
}`

const unitsAssert = `
function same(a, b) {
	if (Object.is(a, b)) return true;
	if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
	if (Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
	const [ka, kb] = [Object.keys(a), Object.keys(b)];
	return ka.length === kb.length && ka.every((k) => Object.hasOwn(b, k) && same(a[k], b[k]));
}
function check(ok, what, note) { if (!ok) throw new Error(note ? note + ': ' + what : what); }
const show = (v) => JSON.stringify(v) ?? String(v);
export default {
	equal: (a, b, note) => check(Object.is(a, b), show(a) + ' is not ' + show(b), note),
	deepEqual: (a, b, note) => check(same(a, b), show(a) + ' is not ' + show(b), note),
	match: (a, b, note) => check(b.test(a), show(a) + ' does not match ' + b, note),
	fail: (note) => check(false, note),
};`

func TestUnits(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(os.DirFS("../../daemon/web")))
	for name, body := range map[string]string{"/{$}": unitsPage, "/run.js": unitsRun, "/assert.js": unitsAssert} {
		mux.HandleFunc("GET "+name, func(w http.ResponseWriter, _ *http.Request) {
			if path.Ext(name) == ".js" {
				w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
			} else {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
			}
			_, _ = w.Write([]byte(body))
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	files, err := os.ReadDir("../../daemon/web/unit")
	if err != nil {
		t.Fatal(err)
	}
	p := newTab(t)
	total := 0
	for _, f := range files {
		p.visit(server.URL + "/")
		var results []struct{ Name, Error string }
		p.eval(`import('/unit/`+f.Name()+`').then(() => import('/run.js')).then(({ runAll }) => runAll())`, &results)
		for _, r := range results {
			total++
			t.Run(f.Name()+"/"+r.Name, func(t *testing.T) {
				if r.Error != "" {
					t.Error(r.Error)
				}
			})
		}
		if len(results) == 0 {
			t.Errorf("%s has no tests", f.Name())
		}
	}
	if total < 25 {
		t.Errorf("only %d tests ran: the test looks in the wrong place", total)
	}
}

// The assertions that the unit tests use must be able to fail.
func TestUnitsCanFail(t *testing.T) {
	t.Parallel()
	p := newTab(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(unitsPage))
	})
	mux.HandleFunc("/assert.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		_, _ = w.Write([]byte(unitsAssert))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	p.visit(server.URL + "/")
	var refused int
	p.eval(`import('/assert.js').then(({ default: assert }) => [
		() => assert.equal(1, 2), () => assert.equal('1', 1), () => assert.deepEqual([1, { a: 2 }], [1, { a: 3 }]),
		() => assert.deepEqual([1], [1, 2]),
		() => assert.deepEqual({}, []), () => assert.match('a', /b/), () => assert.fail('no'),
	].filter((f) => { try { f(); return false; } catch { return true; } }).length)`, &refused)
	if refused != 7 {
		t.Errorf("%d of 7 false assertions failed", refused)
	}
	p.eval(`import('/assert.js').then(({ default: assert }) => {
		assert.equal(1, 1);
		assert.deepEqual([1, { a: 'x' }], [1, { a: 'x' }]);
		assert.match('ab', /b/);
	})`, new(any))
}
