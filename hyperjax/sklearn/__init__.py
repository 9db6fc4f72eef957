"""scikit-learn estimators that find their hyperparameters by gradients while they are fitted.

    from hyperjax.sklearn import TunedSVC
    model = TunedSVC(kernel="ard").fit(X, y)
    model.best_params_, model.best_score_, model.predict(X_new)

They stand where GridSearchCV(SVC(), ..) would: in pipelines, in cross_val_score, under clone.
"""

try:
    import sklearn as _sklearn  # noqa: F401  whether it is there
except ImportError as error:
    raise ImportError("hyperjax.sklearn needs scikit-learn: pip install 'hyperjax[sklearn]'") from error

from .classifiers import TunedLinearSVC, TunedMKLClassifier, TunedSVC
from .regressors import TunedLinearSVR, TunedSVR

__all__ = ["TunedLinearSVC", "TunedLinearSVR", "TunedMKLClassifier", "TunedSVC", "TunedSVR"]
