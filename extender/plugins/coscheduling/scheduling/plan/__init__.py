"""One plan of a gang set: asked for, noted as slots if it still holds, or refused, and why."""
