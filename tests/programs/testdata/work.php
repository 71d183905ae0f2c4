<?php
// A little of every extension that is there: text, XML, SQL, images, archives, sorting by a language's rules.
$words = [];
for ($i = 0; $i < 40000; $i++) {
    $words[base_convert((string) ($i * 7919 % 10007), 10, 36)][] = str_repeat(chr(97 + $i % 26), $i % 300);
}
ksort($words, SORT_STRING);
echo count($words), ' ', md5(serialize($words)), "\n";
$words = null;

$db = new SQLite3(':memory:');
$db->exec('CREATE TABLE t(a INTEGER, b TEXT)');
$insert = $db->prepare('INSERT INTO t VALUES(?, ?)');
for ($i = 0; $i < 3000; $i++) {
    $insert->bindValue(1, $i * 7919 % 3001);
    $insert->bindValue(2, str_repeat('x', $i % 100));
    $insert->execute();
    $insert->reset();
}
echo $db->querySingle('SELECT sum(a) || length(group_concat(b)) FROM t'), "\n";

$tree = new DOMDocument();
$tree->loadXML('<a>' . str_repeat('<b k="1">x<c/></b>', 2000) . '</a>');
echo (new DOMXPath($tree))->query('//b[c]')->length, ' ', md5($tree->saveXML()), "\n";
echo simplexml_load_string('<a><b>1</b><b>2</b></a>')->b[1], "\n";

$image = imagecreatetruecolor(200, 150);
imagefilledellipse($image, 90, 70, 120, 80, 0xff8800);
ob_start();
imagepng(imagescale($image, 333));
echo md5(ob_get_clean()), "\n";

$names = ['zebra', 'Äpfel', 'apfel', 'Zürich'];
(new Collator('de_DE'))->sort($names);
echo implode(',', $names), ' ', mb_strtoupper('straße'), ' ', iconv('UTF-8', 'ISO-8859-1', 'ü') === "\xfc" ? 'iconv' : '', "\n";

$zip = new ZipArchive();
$zip->open('a.zip', ZipArchive::CREATE);
$zip->addFromString('a.txt', str_repeat('text ', 10000));
$zip->close();
$zip->open('a.zip');
echo strlen($zip->getFromName('a.txt')), ' ', curl_init('http://localhost/') ? 'curl' : '', ' ', strlen(gzcompress(str_repeat('text', 9999))), "\n";
exit(3);
