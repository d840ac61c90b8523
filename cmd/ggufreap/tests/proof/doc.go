// Package proof forges releases, pins and plans, and wants verify to find each of them and to
// prove what was not touched.
package proof
