"""What losses that hold another loss share."""

from ..prox import has_kinks
from .base import Loss

__all__ = ["Wrapped"]


class Wrapped(Loss):
    """A loss whose hyperparameters are those of `loss` in another shape; `expand` turns them back."""

    loss: Loss

    @property
    def labels(self):  # type: ignore[override]  # answered by the loss inside
        return self.loss.labels

    @property
    def smooth(self):  # type: ignore[override]  # what is fixed for a class is computed for a wrapper
        inside = self.loss.smooth
        return not has_kinks(self.loss) if inside is None else inside

    @property
    def flat(self):  # type: ignore[override]  # what is fixed for a class is computed for a wrapper
        return self.loss.flat

    @property
    def domains(self):  # type: ignore[override]  # what is fixed for a class is computed for a wrapper
        return self.loss.domains

    @property
    def held(self):  # type: ignore[override]  # what is fixed for a class is computed for a wrapper
        return self.loss.held

    def domain_tree(self, hp):
        return self.loss.domain_tree(hp)

    def phi(self, o, y, hp):
        loss, hp = self.expand(hp)
        return loss.phi(o, y, hp)

    def prox(self, v, y, ts, hp):
        loss, hp = self.expand(hp)
        return loss.prox(v, y, ts, hp)

    def interval(self, z, y, s, hp):
        loss, hp = self.expand(hp)
        return loss.interval(z, y, s, hp)

    def scale(self, y, hp):
        loss, hp = self.expand(hp)
        return loss.scale(y, hp)
