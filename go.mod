module tieralloc

go 1.26
