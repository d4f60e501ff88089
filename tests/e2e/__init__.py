"""The extender under a real etcd, kube-apiserver and kube-scheduler, on loopback."""
