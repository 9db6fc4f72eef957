"""placeholder"""
from .newton import Newton as ProxGrad
