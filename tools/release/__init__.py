"""The files of a release, made from pinned sources on one machine: docs/releasing.md."""
