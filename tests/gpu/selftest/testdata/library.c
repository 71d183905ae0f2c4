// An empty library: what run.sh preloads into the stubs, which cost less to start with it.
