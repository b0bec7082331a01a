module gotable

go 1.18
