module example.org/hostile

go 1.22
