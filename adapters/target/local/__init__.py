"""The embedded deploy target: haproxy and supervisord on this machine, apart from every Mendwork process."""
