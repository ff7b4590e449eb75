"""`cltensor.nn.modules`: `Module` and the layers, gathered from one file per family."""

from . import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    instancenorm,
    linear,
    linear_cross_entropy_options,
    loss,
    normalization,
    padding,
    pooling,
    rearrange,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from .activation import *
from .adaptive import *
from .attention import *
from .batchnorm import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .instancenorm import *
from .linear import *
from .linear_cross_entropy_options import *
from .loss import *
from .module import Module
from .normalization import *
from .padding import *
from .pooling import *
from .rearrange import *
from .rnn import *
from .sparse import *
from .transformer import *
from .upsampling import *

__all__ = ["Module"]
__all__ += activation.__all__
__all__ += adaptive.__all__
__all__ += attention.__all__
__all__ += batchnorm.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += instancenorm.__all__
__all__ += linear.__all__
__all__ += linear_cross_entropy_options.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += pooling.__all__
__all__ += rearrange.__all__
__all__ += rnn.__all__
__all__ += sparse.__all__
__all__ += transformer.__all__
__all__ += upsampling.__all__
