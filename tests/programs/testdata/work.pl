# Regexes, hashes, sorting, string growth, fork with pipes, threads.
use strict;
use warnings;
use Config;
use List::Util qw(sum shuffle);
use Digest::MD5 qw(md5_hex);
use POSIX ();
$| = 1;

my %h;
$h{ $_ * 7919 % 100003 } = "value $_" x ( $_ % 5 ) for 1 .. 60000;
print "hash ", scalar( keys %h ), " ", sum( map { length } values %h ), "\n";
delete @h{ grep { $_ % 3 == 0 } keys %h };
print "left ", scalar( keys %h ), " ", md5_hex( join ",", map { "$_=$h{$_}" } sort { $a <=> $b } keys %h ), "\n";

my $text = join " ", map { "word$_" } 1 .. 40000;
my $n = () = $text =~ /\b(\w*?7)(?=\s)/g;
( my $changed = $text ) =~ s/(\d)(\d)/$2-$1/g;
print "regex $n ", md5_hex($changed), " ", join( "|", ( split /[17]+/, $text )[ 20 .. 25 ] ), "\n";

my $s = "";
$s .= chr( 65 + $_ % 26 ) x ( $_ % 100 ) for 1 .. 60000;
print "string ", length($s), " ", md5_hex($s), " ", md5_hex( scalar reverse $s ), "\n";
print "pack ", md5_hex( pack "w/a* N n C*", $s, 1, 2, 3 .. 99 ), "\n";

for my $child ( 1 .. 6 ) {
    my $pid = open( my $from, "-|" ) // die "fork: $!";
    if ( !$pid ) {
        print "child $child ", length( join "", map { $_ x $child } 1 .. 20000 ), "\n";
        POSIX::_exit($child) if $child % 2 && close STDOUT;
        exit $child;
    }
    print while <$from>;
    close $from;
    print "ended with ", $? >> 8, "\n";
}
print `seq 1 5 | tr '\\n' ' '`, "\n";

if ( $Config{useithreads} ) {
    require threads;
    my @t = map { my $i = $_; threads->create( sub { my %c; $c{ $_ % 999 } .= $i for 1 .. 9000; return scalar keys %c } ) } 1 .. 5;
    print "threads ", join( " ", map { $_->join } @t ), "\n";
}
sub deep { my $n = shift; return $n ? 1 + deep( $n - 1 ) : 0 }
{ no warnings "recursion"; print "deep ", deep(20000), "\n" }
$! = 0; # die ends with errno where it is set
die "the end\n";
