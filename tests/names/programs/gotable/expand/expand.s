// A package with assembly may declare functions that have no body.
