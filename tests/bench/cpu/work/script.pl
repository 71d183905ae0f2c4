# An ordinary script: words counted in a hash, lists of lists, regular expressions, sorting.
use strict;
use warnings;

my $total = 0;
for my $round (1 .. $ARGV[0]) {
    my %count;
    my @rows;
    for my $k (1 .. 10000) {
        my $word = sprintf 'w%x-%s', $k * $k % 9973, 'x' x ($k % 50);
        $count{$word}++;
        push @rows, [$k, $word, [map { $_ * $k % 101 } 1 .. 5]];
    }
    my $text = join ' ', map { "$_=$count{$_}" } sort keys %count;
    $total += length $1 while $text =~ /(w[0-9]+)-/g;
    $text =~ s/(\d+)/<$1>/g;
    $total += length $text;
    for my $row (sort { $a->[1] cmp $b->[1] || $a->[0] <=> $b->[0] } @rows) {
        $total = ($total * 31 + $row->[0] + $row->[2][$round % 5]) % 1_000_000_007;
    }
}
print "$total\n";
