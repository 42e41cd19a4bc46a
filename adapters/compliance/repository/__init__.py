"""What adapters of the workspace ports must hold of snapshots."""
