package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is one fenced block of a page.
type block struct {
	page string // path below the root
	line int    // of its first line of text
	lang string
	from string // the file that the comment above it names
	text string
}

const root = "../.."

// pages returns the pages whose blocks are tested, as paths below the root.
func pages(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) < 8 {
		t.Fatalf("found %d pages in docs (%v); the test looks in the wrong place", len(found), err)
	}
	names := []string{"README.md", "README.zh-CN.md"}
	for _, f := range found {
		names = append(names, "docs/"+filepath.Base(f))
	}
	return names
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var fromComment = regexp.MustCompile(`^<!-- from (\S+) -->$`)

// blocks returns the fenced blocks of a page.
func blocks(t *testing.T, page string) (found []block) {
	t.Helper()
	var open *block
	var text []string
	from := ""
	for i, line := range strings.Split(readFile(t, page), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open != nil && isFence:
			open.text = strings.Join(text, "\n")
			found = append(found, *open)
			open, text = nil, nil
		case open != nil:
			text = append(text, line)
		case isFence:
			open = &block{page: page, line: i + 2, lang: fence, from: from}
			from = ""
		default:
			if m := fromComment.FindStringSubmatch(line); m != nil {
				from = m[1]
			} else if line != "" {
				from = ""
			}
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block has no end", page, open.line)
	}
	return found
}

func TestEveryBlockHasAKnownLanguage(t *testing.T) {
	known := []string{"go", "diff", "sh", "yaml", "text", "mermaid"}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if !slices.Contains(known, b.lang) {
				t.Errorf("%s:%d: a block of language %q; the test knows %v", b.page, b.line, b.lang, known)
			}
		}
	}
}

// Code in a page is a copy of code that is compiled and tested.
func TestCodeIsTakenFromTheFileThatThePageNames(t *testing.T) {
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.lang != "go" && b.lang != "diff" {
				continue
			}
			if b.from == "" {
				t.Errorf("%s:%d: a comment such as <!-- from examples/minimal/main.go --> must name the file", b.page, b.line)
				continue
			}
			file := dedent(readFile(t, b.from))
			text := b.text
			if b.lang == "diff" {
				text = added(text)
			}
			if !strings.Contains(file, dedent(text)) {
				t.Errorf("%s:%d: the block is not in %s any more; copy it again", b.page, b.line, b.from)
			}
		}
	}
}

// added returns the lines that a diff adds.
func added(diff string) string {
	var lines []string
	for line := range strings.SplitSeq(diff, "\n") {
		if text, ok := strings.CutPrefix(line, "+"); ok {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

// dedent removes the indentation of each line, so that a part of a function can be shown at the margin.
func dedent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|<img src="([^"]+)"`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestLinkTargetsExist(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for page := range strings.FieldsSeq(string(out)) {
		if strings.Contains(page, "testdata/") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(readFile(t, page), ""), -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(target, "#")
			path := filepath.Join(root, filepath.Dir(page), file)
			if file == "" {
				path = filepath.Join(root, page)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, target)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(t, path), anchor) {
				t.Errorf("%s links to %s, which has no such heading", page, target)
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d links were found; the test looks in the wrong place", checked)
	}
}

// anchors returns the names by which GitHub links to the headings of a page.
func anchors(t *testing.T, path string) (names []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(b), ""), -1) {
		slug := notSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(slug, " ", "-"))
	}
	return names
}
