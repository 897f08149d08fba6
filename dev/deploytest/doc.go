// Package deploytest tests what users install: the image (package image), and the chart and the manifests of folder
// deploy (package chart). It is a module of its own, because helm has many dependencies.
package deploytest
