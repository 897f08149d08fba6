// Package ratelimit limits the requests of each client, and says which address a request comes from.
package ratelimit
