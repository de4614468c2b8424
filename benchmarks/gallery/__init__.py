"""The gallery of the documentation: small models trained for its pictures, and their attention."""

from ._exhibit import Budget as Budget, Exhibit as Exhibit, Shown as Shown
