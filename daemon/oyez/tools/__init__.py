"""What an owner measures with: the devices there are, a meter, and the calibration.

They run on main's thread, and hear through the daemon's own ports, threads and front end.
"""
