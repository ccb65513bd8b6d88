"""``python -m hinge.tour``: one process that compiles ahead."""

from hinge.tour import main

if __name__ == "__main__":
    main()
