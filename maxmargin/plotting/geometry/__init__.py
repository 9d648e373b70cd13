"""Ideas of the subject that need no data of one's own: constraints, and a lift into space."""
