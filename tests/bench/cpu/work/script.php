<?php
// Objects, strings and hash tables, as a page generator makes them.
class Item { public $id; public $name; public $tags; function __construct($i) { $this->id = $i; $this->name = "item " . dechex($i * 7919 % 65536); $this->tags = explode('-', 'a-bb-ccc-dddd-' . $i); } }
$total = 0;
for ($r = 0; $r < (int)$argv[1]; $r++) {
	$all = [];
	for ($i = 0; $i < 20000; $i++) $all[] = new Item($i * ($r + 1));
	usort($all, fn($a, $b) => strcmp($a->name, $b->name));
	$text = json_encode($all);
	foreach (json_decode($text, true) as $k => $x) $total = ($total * 31 + strlen($x['name']) + count($x['tags']) + $k) % 1000000007;
	$total += strlen(preg_replace_callback('/item ([0-9a-f]+)/', fn($m) => strtoupper($m[1]) . '!', substr($text, 0, 400000)));
	$words = [];
	foreach (preg_split('/[",:]+/', substr($text, 0, 500000)) as $w) $words[$w] = ($words[$w] ?? 0) + 1;
	$total += count($words);
}
echo $total, "\n";
