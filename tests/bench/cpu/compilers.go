package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Compilers, and what they get. It is made here: its size is that of the work.

// function is a part of what the compiler gets; %[1]d is its number.
const function = `
struct pair_%[1]d { int key, value; struct pair_%[1]d *next; };
static int compare_%[1]d(const void *a, const void *b)
{
	const struct pair_%[1]d *x = a, *y = b;
	return (x->key > y->key) - (x->key < y->key);
}
int work_%[1]d(struct pair_%[1]d *list, unsigned n, const char *text)
{
	unsigned long h = %[1]dul;
	int table[%[2]d] = {0}, sum = 0;
	qsort(list, n, sizeof *list, compare_%[1]d);
	for (unsigned i = 0; i < n; i++) {
		struct pair_%[1]d *p = &list[i];
		switch (p->key %% 11) {
		case 0: sum += p->value * %[1]d; break;
		case 1: sum ^= p->value << (i & 7); break;
		case 2: table[i %% %[2]d] += p->key; break;
		case 5: for (p = p->next; p != NULL; p = p->next) sum += p->key ^ p->value; break;
		case 7: h = h * 31 + strlen(text + i %% 3); break;
		default: sum -= (int)(h >> (p->key & 15));
		}
		while (*text != 0 && *text != '%[3]c')
			h = (h ^ (unsigned char)*text++) * 1099511628211ul;
	}
	for (int i = 0; i < %[2]d; i++)
		for (int k = 0; k < i; k++)
			sum += table[i] > table[k] ? table[i] * k : printf("%%d %%lu\n", table[k], h);
	return sum + (int)h;
}
`

// unit is a part of what the C++ compiler gets.
const unit = `
namespace unit_%[1]d {
struct Key {
	std::string text; int number;
	bool operator<(const Key &o) const { return std::tie(text, number) < std::tie(o.text, o.number); }
};
template <int N> struct Ladder { static int step(int x) { return x %% (N + 2) + Ladder<N - 1>::step(x + N); } };
template <> struct Ladder<0> { static int step(int x) { return x * %[1]d; } };
int work(const std::vector<std::string> &words)
{
	std::map<Key, std::vector<int>> lengths;
	std::unordered_map<std::string, std::shared_ptr<Key>> known;
	for (const auto &w : words) {
		lengths[{w, int(w.size()) %% %[2]d}].push_back(Ladder<%[2]d>::step(int(w.size())));
		known.emplace(w, std::make_shared<Key>(Key{w + '%[3]c', %[1]d}));
	}
	std::vector<std::pair<int, Key>> order;
	for (const auto &[key, list] : lengths)
		order.emplace_back(std::accumulate(list.begin(), list.end(), 0), key);
	std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
	std::function<int(const Key &)> f = [&](const Key &k) { return int(known.count(k.text)) + k.number; };
	int sum = 0;
	for (const auto &[n, key] : order)
		sum += n * f(key);
	return sum;
}
}
`

func gcc(p *place) (job, error) { return translateC(p, "gcc") }

func clang(p *place) (job, error) { return translateC(p, "clang") }

func gplusplus(p *place) (job, error) { return translateCpp(p, "g++") }

func clangplusplus(p *place) (job, error) { return translateCpp(p, "clang++") }

func translateC(p *place, name string) (job, error) {
	return compiler(p, name, "large-source.c", []string{"stdio.h", "stdlib.h", "string.h"},
		function, 90)
}

func translateCpp(p *place, name string) (job, error) {
	return compiler(p, name, "large-source.cpp", []string{"algorithm", "functional", "map",
		"memory", "numeric", "string", "tuple", "unordered_map", "vector"}, unit, 4)
}

// compiler translates one large file of n parts. What runs is the compiler proper, as the driver
// calls it.
func compiler(p *place, name, source string, headers []string, part string, n int) (job, error) {
	path, err := program(name)
	if err != nil {
		return job{}, err
	}
	var text strings.Builder
	for _, h := range headers {
		fmt.Fprintf(&text, "#include <%s>\n", h)
	}
	for i := range p.scaled(n) {
		fmt.Fprintf(&text, part, i, 5+i%9, 'a'+i%26)
	}
	file, err := p.write(source, []byte(text.String()))
	args := []string{path, "-O2", "-S", "-o", "-", file}
	if strings.HasSuffix(source, ".cpp") {
		args = append(args, "-std=c++17")
	}
	return job{args: args, dir: p.dir}, err
}

// class is a part of what the Java compiler gets; %[1]d is its number.
const class = `
	interface Shape%[1]d<T extends Comparable<T>> { T best(List<? extends T> list); default int size() { return %[1]d; } }
	static class Work%[1]d implements Shape%[1]d<String> {
		final Map<String, List<Integer>> lengths = new TreeMap<>();
		public String best(List<? extends String> list) {
			return list.stream().filter(s -> s.length() > %[1]d).map(s -> s + "%[1]d").sorted(Comparator.comparing(String::length)).findFirst().orElse("none");
		}
		int run(String text) {
			for (String w : text.split(" "))
				lengths.computeIfAbsent(w, k -> new ArrayList<>()).add(w.length());
			Function<Integer, Function<Integer, Integer>> f = a -> b -> a * b + %[1]d;
			switch (text.length() %% 3) {
			case 0: return f.apply(3).apply(lengths.size());
			case 1: return lengths.values().stream().mapToInt(List::size).sum();
			default: return best(new ArrayList<>(lengths.keySet())).hashCode();
			}
		}
	}
`

// javac is a program for the Java virtual machine: the compiler, which is written in Java.
func javac(p *place) (job, error) {
	path, err := program("javac")
	if err != nil {
		return job{}, err
	}
	var text strings.Builder
	text.WriteString("import java.util.*;\nimport java.util.function.*;\nclass Large {\n")
	for i := range p.scaled(40) {
		fmt.Fprintf(&text, class, i)
	}
	text.WriteString("}\n")
	file, err := p.write("Large.java", []byte(text.String()))
	return job{args: []string{path, "-J-XX:+UseSerialGC", "-J-Xmx256m", "-proc:none", "-d",
		filepath.Join(p.dir, "classes"), file}}, err
}
