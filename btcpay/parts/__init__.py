"""The parts (optional plug-ins), one in each folder. To remove a part, delete its folder."""
