"""Drop-ins: modules with the functions, signatures and errors of other tools' modules."""
