"""Constructors that are made of declared parameters."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from sklearn.base import clone

import hinge
from hinge.estimators.parameters import parametrised


@parametrised
class Base:
    C: float = 1.0
    kernel: Any = "rbf"
    shrinking: bool = True


@parametrised
class Child(Base):
    nu: float = 0.5
    C: float = 7.0
    shrinking = False


@parametrised
class Grandchild(Child):
    nu = 0.25
    shrinking: bool = True


def given(cls):
    return {name: one.default for name, one in inspect.signature(cls).parameters.items()}


def test_a_class_has_its_own_parameters_and_those_of_its_bases():
    assert given(Base) == {"C": 1.0, "kernel": "rbf", "shrinking": True}
    assert given(Child) == {"nu": 0.5, "C": 7.0, "kernel": "rbf"}
    assert list(given(Child)) == ["nu", "C", "kernel"], "a class's own come first"
    assert vars(Child(kernel="linear")) == {"nu": 0.5, "C": 7.0, "kernel": "linear"}


def test_what_a_class_fixes_is_no_parameter_and_can_be_declared_again():
    assert Child().shrinking is False
    with pytest.raises(TypeError, match=r"Child.__init__\(\) got an unexpected keyword argument 'shrinking'"):
        Child(shrinking=True)
    assert given(Grandchild) == {"shrinking": True, "C": 7.0, "kernel": "rbf"}
    assert Grandchild().nu == 0.25


def test_only_instances_have_parameters_as_attributes():
    assert not hasattr(Base, "C")
    assert not hasattr(hinge.SVC, "gamma")


def test_parameters_are_named_not_counted():
    with pytest.raises(TypeError, match="positional"):
        Base(1.0)


class Users(hinge.SVC):
    """A user's subclass: an annotation of its own declares nothing."""

    note: str = "mine"


class Explicit(hinge.SVC):
    def __init__(self, C=3.0, extra=1):
        super().__init__(C=C)
        self.extra = extra


def test_subclasses_of_users_stay_what_they_are():
    assert Users.note == "mine"
    assert Users().get_params() == hinge.SVC().get_params()
    assert clone(Explicit(C=2.0, extra=5)).get_params() == {"C": 2.0, "extra": 5}


class Checked(hinge.SVC):
    """A subclass that looks at what it is given."""

    @property
    def C(self):  # noqa: N802
        return self._price

    @C.setter
    def C(self, value):  # noqa: N802
        self._price = value


def test_a_property_of_a_subclass_is_set():
    assert Checked(C=4.0)._price == 4.0
