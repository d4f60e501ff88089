"""admissionregistration.k8s.io/v1: admission policies of the API server, as far as the doctor reads them. ConfigMaps are their parameters.

Kubernetes: k8s.io/api/admissionregistration/v1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import Object, ObjectMeta

VERSION = "admissionregistration.k8s.io/v1"


class Expression(Object, frozen=True, gc=False):
    expression: str = ""


class Mutation(Object, frozen=True, gc=False):
    apply_configuration: Expression | None = None
    json_patch: Expression | None = None


class AdmissionPolicySpec(Object, frozen=True, gc=False):
    """Of both kinds: one that mutates has no validations, one that validates no mutations."""

    match_conditions: tuple[Expression, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    validations: tuple[Expression, ...] = ()


class AdmissionPolicy(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: AdmissionPolicySpec = AdmissionPolicySpec()

    def has(self, text: str) -> bool:
        """Whether what it sets or checks has the text as a CEL literal."""
        parts = [*self.spec.validations]
        for each in self.spec.mutations:
            parts += [part for part in (each.apply_configuration, each.json_patch) if part is not None]
        return any(f"'{text}'" in part.expression or f'"{text}"' in part.expression for part in parts)


class ParamRef(Object, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""


class AdmissionPolicyBindingSpec(Object, frozen=True, gc=False):
    policy_name: str = ""
    param_ref: ParamRef | None = None
    validation_actions: tuple[str, ...] = ()


class AdmissionPolicyBinding(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: AdmissionPolicyBindingSpec = AdmissionPolicyBindingSpec()


class ConfigMap(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    data: dict[str, str] = {}
