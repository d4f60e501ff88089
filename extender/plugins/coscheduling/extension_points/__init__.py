"""What the plugin does at kube-scheduler's extension points: PreFilter, Filter, Score, Permit, PreBind."""
