# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # run.sh, which sources this, has the variables, and calls parts by name
# Part regions: memory that sleeps and wakes.

regions() {
	compile regions regions.cu || return
	holds "regions, 8 GiB sleep and wake" '^8 GiB: link ' preload "$out/regions" 8 3
	holds "regions, 40 GiB sleep and wake" '^40 GiB: link ' preload "$out/regions" 40 3
}
