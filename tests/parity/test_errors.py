"""Bad inputs: the same class of error as torch, and the words that tell a user what to do.

Each line is a program, and after `##` the words of torch's message that cltensor's message must
contain. Torch runs the program, too, so that the table cannot deviate from torch's messages.
"""

from __future__ import annotations

import numpy as np
import pytest
from parity.oracle import assert_same_error, evaluate
from support import data

from cltensor import dtypes
from cltensor.ops.row import ROWS

TABLE = """
torch.histc(a, 3, float("nan"), 1)              ## torch.histc: range of [nan, 1] is not finite
torch.Generator("opengl")                       ## OPENGL device type not an accelerator.
torch.split(a)                                  ## split() missing 1 required positional argument: 'split_size_or_sections'
a.split(dim=0)                                  ## split() missing 1 required positional argument: 'split_size
torch.Generator().get_offset()                  ## CPU Generator does not use offset
torch.Generator().set_offset(4)                 ## CPU Generator does not use offset
torch.gradient(m)                               ## Subtraction, the `-` operator, with two bool tensors is not supported.
torch.isclose(a, a, "1")                        ## must be float, not str
torch.isclose(a, a, 1j)                         ## must be float, not complex
torch.isclose(a, a, atol=a)                     ## isclose(): argument 'atol' must be float, not Tensor
torch.isclose(a, a, atol=torch.tensor(1.0, requires_grad=True))  ## isclose(): argument 'atol' must be float, not Tensor
torch.allclose(a, a, rtol=None)                 ## allclose(): argument 'rtol' must be float, not NoneType
torch.use_deterministic_algorithms(True, warn_only=1)  ## _set_deterministic_algorithms(): argument 'warn_only' must be bool, not int
torch.FloatTensor(2, device="cuda")             ## legacy constructor expects device type: cpu but device type: cuda was passed
torch.Tensor((2.0, 3.0), device="meta")         ## legacy constructor expects device type: cpu but device type: meta was passed
a.new(2, device="meta")                         ## legacy constructor expects device type: cpu but device type: meta was passed
torch.Tensor(a, device="meta")                  ## Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.
a.new(a, device="meta")                         ## Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.
torch.nn.functional.scaled_dot_product_attention(a, a.double(), a)  ## Expected query, key, and value to have the same dtype, but got query.dtype: float key.dtype: double
torch.nn.functional.multi_margin_loss(a, torch.tensor([0, 1]))  ## target tensor should be 1-D with size equal to the number of input samples (batch size). Expected target size [3], but got [2].
torch.nn.functional.multilabel_margin_loss(a[:, :0], k[:, :0])  ## Expected non-empty vector or matrix with optional 0-dim batch size, but got: [3, 0]
torch.nn.functional.prelu(a, torch.ones(1, 1))  ## prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2
torch.nn.functional.prelu(a.double(), torch.ones(4))  ## prelu: Type promoting not supported. Got Double and Float
torch.nn.functional.rrelu(a, 0.5, 0.1)          ## Lower bound should be less than or equal to the upper bound
torch.nn.functional.softshrink(a, -0.5)         ## lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -0.5
torch.nn.functional.hardtanh(m)                 ## Bool inputs not supported for hardtanh
torch.nn.functional.hardtanh(a, 2, -2)          ## min_val cannot be greater than max_val
torch.nn.functional.batch_norm(a, None, None)   ## running_mean must be defined in evaluation mode
torch.nn.functional.gaussian_nll_loss(a, a, torch.ones(3, 2))  ## var is of incorrect size
torch.masked.median(k, mask=m & False)          ## masked median expects no fully masked out rows if dtype is not floating point
torch.masked.sum(a, mask=torch.ones(1, 3, 4))   ## _input_mask expected broadcastable mask (got mask dimensionality higher than of the input)
torch.lstm_cell(a, (a, a), torch.ones(16, 5), torch.ones(16, 4))  ## input has inconsistent input_size: got 4 expected 5
torch.nn.LSTM(4, 0)                             ## hidden_size must be greater than zero
a + torch.ones(2, 5)                            ## The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1
a * torch.ones(2, 4)                            ## The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0
torch.where(m, a, torch.ones(5))                ## must match the size of tensor b (5) at non-singleton dimension
a.add_(torch.ones(2, 3, 4))                     ## output with shape [3, 4] doesn't match the broadcast shape [2, 3, 4]
setattr(a, "is_leaf", False)                    ## attribute 'is_leaf' of 'torch._C.TensorBase' objects is not writable
setattr(a, "real", "1")                         ## can't assign a str to a torch.FloatTensor
v.index_put_((i,), v[0])                        ## refer to a single memory location
torch.index_select(a[:0], 0, i)                 ## index_select(): self indexing axis dim should be positive
torch.median(a, 0, out=(v.double(), k[0]))      ## Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type torch.DoubleTensor does not equal torch.FloatTensor (while checking arguments for median)
torch.mode(a, 0, out=(v, v))                    ## expected scalar type 'Long' but got 'Float' for indices output
torch.kthvalue(a, 1, 0, out=(v, v))             ## output indices must be of scalar type Long
torch.amax(a, 0, out=v.double())                ## Expected the dtype for input and out to match, but got Float for input's dtype and Double for out's dtype.
torch.argmax(a, 0, out=v)                       ## Expected out tensor to have dtype long int, but got float instead
torch.norm(a, "inf")                            ## linalg.matrix_norm: Order inf not supported.
a.requires_grad_().set_(v)                      ## a leaf Variable that requires grad is being used in an in-place operation.
torch.logcumsumexp(a.double(), 0, out=a)        ## expected scalar_type Double but found Float
k.add_(1.5)                                     ## result type Float can't be cast to the desired output type Long
k.mul_(a)                                       ## result type Float can't be cast to the desired output type Long
k.div_(2)                                       ## result type Float can't be cast to the desired output type Long
torch.add(a, a, out=torch.empty(3, 4, dtype=torch.int32))  ## can't be cast to the desired output type Int
torch.neg(a, out=torch.empty(3, 4, dtype=torch.float64))  ## Found dtype Double but expected Float
torch.abs(a, out=torch.empty(3, 4, dtype=torch.float64))  ## Found dtype Double but expected Float
torch.floor(a, out=torch.empty(3, 4, dtype=torch.float64))  ## Found dtype Double but expected Float
torch.sign(a, out=torch.empty(3, 4, dtype=torch.float64))  ## Found dtype Double but expected Float
torch.frac(a, out=torch.empty(3, 4, dtype=torch.float64))  ## Found dtype Double but expected Float
torch.round(k, out=torch.empty(3, 4))  ## Found dtype Float but expected
torch.add(k, 1, alpha=0.5)                      ## For integral input tensors, argument alpha must not be a floating point number
torch.add(m, m, alpha=1.5)                      ## For integral input tensors, argument alpha must not be a floating point number.
m - m                                           ## Subtraction, the `-` operator, with two bool tensors is not supported
-m                                              ## Negation, the `-` operator, on a bool tensor is not supported
~a                                              ## ~ (operator.invert) is only implemented on integer and Boolean-type tensors
a & a                                           ## bitwise_and
k // 0                                          ## ZeroDivisionError
k % 0                                           ## ZeroDivisionError
torch.bitwise_and(1, 2)                         ## bitwise_and() received an invalid combination of arguments - got (int, int)
torch.clamp_min(1, a)                           ## clamp_min() received an invalid combination of arguments - got (int, Tensor)
torch.Tensor.__radd__(1, 2)                     ## doesn't apply to a 'int' object
torch.Tensor.__rdiv__(1, 2)                     ## 'int' object has no attribute 'reciprocal'
setattr(a, 'grad', k)                           ## attempting to assign a gradient with dtype 'long int' to a tensor with grad_dtype 'Float'
setattr(a, 'grad', a.to(torch.uint16))          ## attempting to assign a gradient with dtype 'short unsigned int' to a tensor with grad_dtype 'Float'
torch.cat((a, a), out=a)                        ## refer to a single memory location
torch.take(a, k, out=a[0])                      ## refer to a single memory location
a.narrow(0, torch.tensor([0.0]), 1)             ## start must be an 0-dim integral Tensor
torch.narrow_copy(a, 2, 0, 1)                   ## Expected dim < static_cast<int64_t>(self_sizes.size()) to be true
torch.take(a, k, out=k)                         ## self and out expected to have the same dtype, but got self.dtype = Float and out.dtype = Long
torch.gather(a, 0, k, out=k)                    ## Expected out tensor to have dtype float, but got long int instead
torch.index_select(a, 0, k[0, :1], out=k)       ## self and result must have the same scalar type
torch.index_select(a, 0, k[0, :2], out=v.expand(2, 4))  ## more than one element of the written-to tensor refers to a single memory location
a.masked_fill(m, 1e40)                          ## value cannot be converted to type float without overflow
a.half().masked_fill(m, 1e10)                   ## value cannot be converted to type c10::Half without overflow
k.masked_fill(m, torch.tensor(1j))              ## value cannot be converted to type int64_t without overflow
torch.arange(0, 4, 0.5, dtype=torch.int64)      ## step must be nonzero
torch.arange(3, dtype=torch.bool)               ## "arange_cpu" not implemented for 'Bool'
torch.ones(2, out=k, dtype=torch.float32)       ## dtype Float does not match dtype of out parameter (Long)
torch.linspace(0, 1j, 3, dtype=torch.int32)     ## inferred dtype c10::complex<float> can't be safely cast to passed dtype Int
k ** -1                                         ## Integers to negative integer powers are not allowed
torch.div(a, a, rounding_mode='up')             ## div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'
torch.clamp(a)                                  ## At least one of 'min' or 'max' must not be None
torch.mm(a, a)                                  ## mat1 and mat2 shapes cannot be multiplied (3x4 and 3x4)
torch.mm(a, v)                                  ## mat2 must be a matrix
torch.mm(a, k.t())                              ## expected m1 and m2 to have the same dtype
a @ torch.ones(3)                               ## size mismatch, got input (3), mat (3x4), vec (3)
torch.bmm(a, a)                                 ## batch1 must be a 3D tensor
torch.bmm(h, h)                                 ## Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 3]
torch.matmul(h, torch.ones(3, 4, 2))            ## The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0
torch.matmul(v, torch.tensor(1.0))              ## both arguments to matmul need to be at least 1D
torch.dot(a, a)                                 ## 1D tensors expected, but got 2D and 2D tensors
torch.dot(v, torch.ones(3))                     ## inconsistent tensor size, expected tensor [4] and src [3] to have the same number of elements
torch.mv(a, torch.ones(3))                      ## size mismatch
torch.addmm(torch.ones(5, 5), a, a.t())         ## must match the existing size
torch.outer(a, v)                               ## outer: Expected 1-D argument self, but got 2-D
torch.t(h)                                      ## t() expects a tensor with <= 2 dimensions, but self is 3D
a.view(5)                                       ## shape '[5]' is invalid for input of size 12
a.view(-1, 5)                                   ## shape '[-1, 5]' is invalid for input of size 12
a.view(-1, -1)                                  ## only one dimension can be inferred
a.view(12, 1.0)                                 ## view(): argument 'size' failed to unpack the object at pos 2
torch.ones((torch.tensor(3.0), 4))              ## ones(): argument 'size' (position 1) must be tuple of ints, but found element of type Tensor at pos 0
torch.zeros((4, np.array(3.0)))                 ## zeros(): argument 'size' failed to unpack the object at pos 2 with error "type must be tuple of ints,but got numpy.ndarray"
torch.empty((np.float64(3), 4))                 ## empty(): argument 'size' (position 1) must be tuple of ints, but found element of type numpy.float64 at pos 0
a.reshape((np.array([3, 4]),))                  ## reshape(): argument 'shape' (position 1) must be tuple of ints, but found element of type numpy.ndarray at pos 0
torch.baddbmm(torch.ones(1).half(), a[None], a.t()[None])  ## Input dtypes must be the same, got: input c10::Half, batch1: float, batch2: float
torch.baddbmm(torch.ones(1).long(), a[None], a.t()[None])  ## Input dtypes must be the same, got: input long int, batch1: float, batch2: float
a.view(-2, 6)                                   ## invalid shape dimension -2
a.t().view(12)                                  ## view size is not compatible with input tensor's size and stride
a.reshape(5, 2)                                 ## shape '[5, 2]' is invalid for input of size 12
torch.empty(0).view(-1, 0)                      ## cannot reshape tensor of 0 elements into shape [-1, 0]
a.expand(2, 4)                                  ## The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0
a.expand(4)                                     ## the number of sizes provided (1) must be greater or equal to the number of dimensions in the tensor (2)
a.transpose(0, 2)                               ## Dimension out of range (expected to be in range of [-2, 1], but got 2)
a.permute(0, 0)                                 ## permute(): duplicate dims are not allowed.
a.permute(0)                                    ## number of dimensions in the tensor input does not match the length of the desired ordering of dimensions
a.unsqueeze(4)                                  ## Dimension out of range (expected to be in range of [-3, 2], but got 4)
a.squeeze(2)                                    ## Dimension out of range
a.narrow(0, 2, 2)                               ## start (2) + length (2) exceeds dimension size (3).
a.narrow(0, 0, -1)                              ## narrow(): length must be non-negative.
a.select(0, 3)                                  ## select(): index 3 out of range for tensor of size [3, 4] at dimension 0
a.unfold(0, 5, 1)                               ## maximum size for tensor at dimension 0 is 3 but size is 5
a.diagonal(0, 0, 0)                             ## diagonal dimensions cannot be identical 0, 0
a.chunk(0)                                      ## chunk expects `chunks` to be greater than 0, got: 0
a.split([1, 1])                                 ## split_with_sizes expects split_sizes to sum exactly to 3
a.split(-1)                                     ## split expects split_size be non-negative, but got split_size=-1
a.flatten(1, 0)                                 ## flatten() has invalid args: start_dim cannot come after end_dim
torch.ones(2, 0).unflatten(1, (2, -1, 0))       ## the unspecified dimension size -1 can be any value and is ambiguous
a.unflatten(1, (-2, 2))                         ## invalid shape dimension -2 at index 0 of shape [-2, 2]
torch.set_num_threads(2**65)                    ## Overflow when unpacking long long
a.unflatten(0, "x")                             ## unflatten(): argument 'sizes' (position 2) must be tuple of ints, not str
torch.use_deterministic_algorithms("warn")      ## argument 'mode' (position 1) must be bool, not str
torch._amp_update_scale_(v[0], v[0], v[0], 2.0, 0.5, 3)  ## growth_tracker must be an int tensor.
torch._amp_foreach_non_finite_check_and_unscale_([v], v[:2], v[0])  ## found_inf must be a 1-element tensor.
a.unflatten(0, (2, 2))                          ## Provided sizes [2, 2] don't multiply up to the size of dim 0 (3)
a.movedim((0, 1), (0,))                         ## movedim: Invalid source or destination dims
a.movedim((0, 1), (1, 1))                       ## movedim: repeated dim in `destination` ([1, 1])
torch.as_strided(a, (2,), (1,), -1)             ## Tensor: invalid storage offset -1
torch.slice_copy(a, 0, 0, 2, 0)                 ## slice step must be positive
a.repeat(2)                                     ## Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor
a.roll((1, 2), 0)                               ## shifts and dimensions must align. shifts: 2, dims:1
a.flip(0, 0)                                    ## dim 0 appears multiple times in the list of dims
torch.diag(h)                                   ## Supports 1D or 2D tensors. Got 3D
torch.arange(1, start=2)                        ## arange() received an invalid combination of arguments - got (int, start=int)
torch.arange(5, step=2)                         ## arange() received an invalid combination of arguments - got (int, step=int)
torch.arange(1, 2, 3, 4)                        ## arange() received an invalid combination of arguments - got (int, int, int, int)
torch.arange("a")                               ## arange(): argument 'end' (position 1) must be Number, not str
torch.linspace(v, 3, 4)                         ## linspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s).
torch.logspace(v, v, 4)                         ## logspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s) and end with 1 dimension(s).
torch.complex(v, v.int())                       ## Expected both inputs to be Half, Float or Double tensors but got Float and Int
torch.tensor(1.0).roll(1, 0)                    ## Dimension specified as 0 but tensor has no dimensions
torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2), dilation=-1) ## dilation should be greater than zero
torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2), padding="same") ## Expected 3-dimensional input for 3-dimensional weight[1, 1, 2], but got 4-dimensional input of size [1, 1, 4, 4] instead
torch.nn.functional.multi_margin_loss(torch.ones(5, 4), torch.full((5,), 4)) ## target out of range
torch.nn.functional.multi_margin_loss(torch.ones(5, 4), torch.full((5,), -1)) ## target out of range
torch.nn.functional.multi_margin_loss(torch.ones(5, 4), torch.ones(5).int()) ## expected scalar type Long but found Int
torch.nn.functional.multi_margin_loss(torch.ones(5, 4), torch.ones(5).long(), weight=torch.ones(5)) ## inconsistent weight size, expected 4 but got [5]
torch.tril(v)                                   ## input tensor must have at least 2 dimensions
a.sum(2)                                        ## Dimension out of range (expected to be in range of [-2, 1], but got 2)
a.sum((0, 0))                                   ## dim 0 appears multiple times in the list of dims
k.mean()                                        ## could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long
k.std()                                         ## std and var only support
torch.empty(0).max()                            ## Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.
torch.empty(0).argmax()                         ## argmax(): Expected reduction dim to be specified for input.numel() == 0.
torch.empty(2, 0).amax(1)                       ## Expected reduction dim 1 to have non-zero size.
torch.empty(2, 0).hash_tensor(1)                ## hash_tensor: Expected reduction dim 1 to have non-zero size.
torch.hash_tensor(torch.empty(0))               ## hash_tensor: Expected reduction dim to be specified for input.numel() == 0.
torch.hash_tensor(a, mode=1)                    ## Unknown hash_tensor mode: 1
torch.hash_tensor(a + 1j)                       ## "xor_sum_cpu" not implemented for 'ComplexFloat'
torch.hash_tensor(a, 0, out=a.long())           ## Expected result to be of dtype uint64, but got Long
a.kthvalue(9, 1)                                ## selected number k out of range for dimension 1
a.topk(9)                                       ## selected index k out of range
a.cumsum(3)                                     ## Dimension out of range
torch.softmax(k, 1)                             ## not implemented for 'Long'
torch.cat(())                                   ## expected a non-empty list of Tensors
torch.cat((a, v))                               ## Tensors must have same number of dimensions: got 2 and 1
torch.cat((a, torch.ones(3, 5)))                ## Sizes of tensors must match except in dimension 0. Expected size 4 but got size 5 for tensor number 1 in the list.
torch.stack((a, v))                             ## stack expects each tensor to be equal size, but got [3, 4] at entry 0 and [4] at entry 1
torch._foreach_norm([a, a[:0]], inf)            ## _foreach_norm cannot compute the infinity norm on an empty tensor because
torch.nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), dilation=0)  ## dilation should be greater than zero, but got [0, 0]
torch.nn.functional.conv2d(torch.ones(1, 4, 5, 5), torch.ones(3, 2, 1, 1), dilation=0)  ## expected input[1, 4, 5, 5] to have 2 channels
torch.nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), stride=2, padding="same", dilation=-1) ## not supported for strided convolutions
torch.nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3), padding="valid", groups=0, dilation=-1) ## non-positive groups is not supported
torch.nn.functional.conv_transpose2d(torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3), stride=2, output_padding=1) ## expected stride to be a single integer value
torch.ones(2, 3).to_sparse_csr().sum(0)         ## reduction operations on CSR tensors with keepdim=False is unsupported
torch.stack((a, a), out=k)                      ## torch.cat(): input types can't be cast to the desired output type Long
torch.hsplit(a, 'two')                          ## hsplit() received an invalid combination of arguments - got (Tensor, str)
a.vsplit('two')                                 ## vsplit() received an invalid combination of arguments - got (str)
torch.narrow_copy(a, 0, 0, -1)                  ## start (0) + length (-1) exceeds dimension size (3).
torch.stack(())                                 ## stack expects a non-empty TensorList
a[3]                                            ## index 3 is out of bounds for dimension 0 with size 3
a[0, -5]                                        ## index -5 is out of bounds for dimension 1 with size 4
a[0, 0, 0]                                      ## too many indices for tensor of dimension 2
a[torch.tensor([3])]                            ## index 3 is out of bounds for dimension 0 with size 3
a[torch.tensor([0.5])]                          ## tensors used as indices must be long, int, byte or bool tensors
a[torch.tensor([True, False])]                  ## The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3, 4] at index 0
a[torch.tensor([0, 1]), torch.tensor([0, 1, 2])]  ## shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]
a[::-1]                                         ## step must be greater than zero
a['x']                                          ## new(): invalid data type 'str'
torch.tensor(1.0)[0]                            ## invalid index of a 0-dim tensor. Use `tensor.item()`
put(a, 0, torch.ones(3))                        ## The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 0
put(a, (0, 0), torch.ones(2))                   ## expand
a.index_select(0, torch.tensor([3]))            ## out of range
a.index_select(0, torch.tensor([0.0]))          ## index_select(): Expected dtype int32 or int64 for index
a.gather(1, torch.tensor([[4]]))                ## index 4 is out of bounds for dimension 1 with size 4
a.gather(1, torch.tensor([0]))                  ## Index tensor must have the same number of dimensions as input tensor
a.gather(1, torch.tensor([[0.0]]))              ## gather(): Expected dtype int32/int64 for index
torch.chain_matmul()                            ## chain_matmul(): Expected one or more matrices
torch.chain_matmul(a, v[0])                     ## Tensor dimension is 0, expected 2 instead.
torch.take_along_dim(v[0], i[0], 0)             ## Dimension specified as 0 but tensor has no dimensions
a.scatter(1, torch.tensor([[5]]), 1.0)          ## index 5 is out of bounds for dimension 1 with size 4
a.scatter(1, torch.tensor([[0]]), k)            ## scatter(): Expected self.dtype to be equal to src.dtype
a.take(torch.tensor([12]))                      ## out of range
a.masked_select(torch.ones(3, 4))               ## masked_select: expected BoolTensor for mask
a.masked_fill(torch.ones(3, 4), 0)              ## only supports boolean masks
a.index_add(0, torch.tensor([0]), a)            ## index_add_(): Number of indices (1) should be equal to source.size(dim)
a.index_add(1, torch.tensor([0]), a[0])         ## index_add_(): Indexing dim 1 is out of bounds of the source tensor with dim 1
a.index_add(0, torch.tensor([0, 1]), a[0, 0])   ## Dimension specified as 0 but tensor has no dimensions
a.index_reduce(1, k[0, :1], a[0], "prod")       ## index_reduce_(): Indexing dim 1 is out of bounds of the source tensor with dim 1
torch.bincount(torch.tensor([-1]))              ## bincount only supports 1-d non-negative integral inputs.
a.item()                                        ## a Tensor with 12 elements cannot be converted to Scalar
bool(a)                                         ## Boolean value of Tensor with more than one value is ambiguous
bool(torch.empty(0))                            ## Boolean value of Tensor with no values is ambiguous
int(a)                                          ## only one element tensors can be converted to Python scalars
len(torch.tensor(1))                            ## len() of a 0-d tensor
list(torch.tensor(1))                           ## iteration over a 0-d tensor
range(3)[torch.tensor(1.5)]                     ## only integer tensors of a single element can be converted to an index
torch.tensor([[1], [1, 2]])                     ## expected sequence of length 1 at dim 1 (got 2)
torch.tensor('x')                               ## new(): invalid data type 'str'
torch.tensor([1, 'x'])                          ## invalid data type 'str'
torch.tensor(object())                          ## Could not infer dtype of object
torch.tensor(300, dtype=torch.uint8)            ## value cannot be converted to type uint8 without overflow
torch.tensor([1, 2**63])                        ## Overflow when unpacking long long
torch.tensor([1, 2**63], dtype=torch.int32)     ## Overflow when unpacking long long
torch.tensor([1, 2**64], dtype=torch.uint64)    ## int too big to convert
torch.tensor([-1, 2**63], dtype=torch.uint64)   ## can't convert negative int to unsigned
torch.tensor(-1, dtype=torch.uint64)            ## can't convert negative int to unsigned
torch.arange(2**63 - 2, 2**63)                  ## value cannot be converted to type int64_t without overflow
torch.linspace(0, 300, 4, dtype=torch.uint8)    ## value cannot be converted to type uint8_t without overflow
k.to(torch.uint8).clamp(max=300)                ## value cannot be converted to type uint8_t without overflow
k.to(torch.int8).clamp(-129, 3)                 ## value cannot be converted to type int8_t without overflow
k.to(torch.int8).clamp_max(128)                 ## value cannot be converted to type int8_t without overflow
k.to(torch.int32).clamp_(-1, 2**31)             ## value cannot be converted to type int without overflow
a.half().clamp_min(-1e6)                        ## value cannot be converted to type c10::Half without overflow
k.to(torch.uint8).add(k.to(torch.uint8), alpha=300)  ## value cannot be converted to type uint8_t without overflow
torch.where(m, k.to(torch.uint8), 300)          ## value cannot be converted to type uint8_t without overflow
torch.zeros(-1)                                 ## zeros: Dimension size must be non-negative.
torch.zeros('x')                                ## zeros()
torch.arange(0, 5, 0)                           ## step must be nonzero
torch.arange(5, 0)                              ## upper bound and lower bound inconsistent with step sign
torch.linspace(0, 1, -1)                        ## number of steps must be non-negative
torch.eye(-1)                                   ## n must be greater or equal to 0, got -1
torch.randint(5, 2, (1,))                       ## random_ expects 'from' to be less than 'to', but got from=5 >= to=2
torch.randperm(-1)                              ## negative dimension -1
torch.normal(0.0, -1.0, (2,))                   ## normal expects std >= 0.0, but found std -1
torch.bernoulli(a + 9)                          ## Expected p_in >= 0 && p_in <= 1 to be true
torch.multinomial(-p[0], 1)                     ## probability tensor contains either `inf`, `nan` or element < 0
torch.from_numpy([1])                           ## expected np.ndarray (got list)
torch.from_numpy(np.array(['x']))               ## can't convert np.ndarray of type numpy.str_.
torch.device('nope')                            ## nope
torch.device('cpu:x')                           ## cpu:x
a.to('nope')                                    ## nope
torch.ones(2, dtype='float32')                  ## ones()
torch.inverse(torch.zeros(2, 2))                ## singular
torch.linalg.cholesky(-torch.eye(2))            ## The factorization could not be completed because the input is not positive-definite
torch.linalg.inv(a)                             ## A must be batches of square matrices, but they are 3 by 4 matrices
torch.det(a)                                    ## must be batches of square matrices
torch.einsum('ij,jk->ik', a, a)                 ## subscript j has size 3 for operand 1 which does not broadcast with previously seen size 4
torch.einsum('ijk', a)                          ## the number of subscripts in the equation (3) does not match the number of dimensions (2) for operand 0
a.requires_grad_().numpy()                      ## Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.
k.requires_grad_()                              ## only Tensors of floating point
a.backward()                                    ## element 0 of tensors does not require grad and does not have a grad_fn
(a.requires_grad_() * 2).backward()             ## grad can be implicitly created only for scalar outputs
(a.requires_grad_() * 2).backward(v)            ## Mismatch in shape: grad_output[0] has a shape of torch.Size([4]) and output[0] has a shape of torch.Size([3, 4]).
a.requires_grad_().add_(1)                      ## a leaf Variable that requires grad is being used in an in-place operation.
a.requires_grad_()[0].zero_()                   ## a view of a leaf Variable that requires grad is being used in an in-place operation.
twice((a.requires_grad_() * a).sum())           ## Trying to backward through the graph a second time
torch.autograd.grad(v.sum(), a)                 ## does not require grad
torch.autograd.grad(v.requires_grad_().sum(), a.requires_grad_()) ## appears to not have been used in the graph
copy.deepcopy(a.requires_grad_() * 2)           ## Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol
torch.nn.functional.cross_entropy(a, torch.tensor([0, 1, 9]))  ## Target 9 is out of bounds.
torch.nn.functional.cross_entropy(a, torch.tensor([0, 1]))     ## Expected input batch_size (3) to match target batch_size (2).
torch.nn.functional.nll_loss(a, torch.zeros(3)) ## expected target dtype to be Long or Byte, but got Float
torch.nn.functional.embedding(torch.tensor([5]), a)            ## index out of range in self
torch.nn.functional.linear(a, torch.ones(2, 3))                ## mat1 and mat2 shapes cannot be multiplied (3x4 and 3x2)
torch.nn.functional.layer_norm(a, (3,))         ## Given normalized_shape=[3], expected input with shape [*, 3], but got input of size[3, 4]
torch.nn.functional.dropout(a, 2.0)             ## dropout probability has to be between 0 and 1, but got 2.0
torch.nn.functional.softmax(a, 5)               ## Dimension out of range
torch.nn.functional.conv1d(a, a.view(2, 2, 3))  ## Given groups=1, weight of size [2, 2, 3], expected input[1, 3, 4] to have 2 channels, but got 3 channels instead
torch.nn.functional.conv1d(a, a[:, :, None].double())          ## Given groups=1, weight of size [3, 4, 1], expected input[1, 3, 4] to have 4 channels
torch.nn.functional.conv_transpose1d(a, a.view(3, 2, 2), stride=2, output_padding=2)  ## output padding must be smaller than either stride or dilation
torch.nn.functional.unfold(a[None], 4)          ## Given input with spatial size (3, 4), kernel_size=(4, 4), dilation=(1, 1), padding=(0, 0)
torch.nn.functional.one_hot(torch.tensor([3]), 2)  ## Class values must be smaller than num_classes.
torch.nn.functional.interpolate(a, size=(2,))   ## Input and output must have the same number of spatial dimensions
torch.nn.functional.interpolate(a[None], size=2, mode='bilinear')  ## Got 3D input, but bilinear mode needs 4D input
torch.nn.functional.grid_sample(a[None, None], a.view(1, 2, 3, 2)[..., :1])  ## expected grid to have size 2 in last dimension
torch.nn.functional.pixel_shuffle(a[None], 2)   ## divisible by the square of upscale_factor
torch.nn.functional.embedding_bag(torch.tensor([5]), a, torch.tensor([0]))  ## Index 0 of input takes value 5 which is not in the valid range [0, 3)
torch.nn.functional.embedding_bag(torch.tensor([5]), a, torch.tensor([0]), mode='max')  ## embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be 5
torch.nn.functional.max_unpool3d(a[None, None, None], torch.zeros(1, 1, 1, 3, 4, dtype=torch.int64), [1, 1])  ## There should be exactly three elements (depth, height, width) in output_size, but got 2 elements.
torch.nn.functional.adaptive_max_pool2d(a[None].detach().requires_grad_(), 0).sum().backward()  ## adaptive_max_pool2d_backward(): Expected grad_output to have non-zero size for non-batch dimensions, but grad_output has sizes [1, 0, 0] with dimension 1 being empty
torch.nn.utils.rnn.pack_padded_sequence(torch.zeros(0, 1, 2), torch.ones(2, 2))  ## Cannot pack empty tensors.
torch.nn.functional.ctc_loss(a[:, None], torch.tensor([[1]]), (4,), (1,))   ## Expected input_lengths to have value at most 3, but got value 4
torch.nn.functional.pad(v, (1, 1, 1, 1))        ## Padding length should be less than or equal to two times the input dimension
torch.nn.functional.pad(a[None, :0], (1, 1), 'replicate')  ## Expected 2D or 3D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: [1, 0, 4]
torch.nn.functional.batch_norm(a, None, None, training=True, eps=0.0)  ## batch_norm eps must be positive during training, but got 0.0
torch.nn.functional.nll_loss(a, torch.tensor([0, 1, 2]), torch.ones(4).half())  ## expected scalar type Float but found Half
torch.nn.functional.multi_margin_loss(a, torch.tensor([0, 1, 2]), weight=torch.ones(4).half())  ## expected scalar type Float but found Half
torch.nn.functional.nll_loss(a, torch.tensor([0, 1, 2]), v.clone().requires_grad_())  ## The function 'nll_loss_forward' is not differentiable with respect to argument 'weight'. This input cannot have requires_grad True.
torch.nn.functional.binary_cross_entropy(a.sigmoid(), a, a.clone().requires_grad_())  ## The function 'binary_cross_entropy' is not differentiable with respect to argument 'weight'
torch.nn.functional.binary_cross_entropy_with_logits(a, a, pos_weight=v.clone().requires_grad_())  ## The function 'binary_cross_entropy_with_logits' is not differentiable with respect to argument 'pos_weight'
torch.nn.functional.batch_norm(a, v, v.clone().requires_grad_())  ## The function 'native_batch_norm' is not differentiable with respect to argument 'running_var'
torch.nn.functional.mse_loss(a, a, reduction='x')  ## x is not a valid value for reduction
torch.nn.functional.l1_loss(a, a, weight=v)     ## Weights and input must have the same size.
a.foo                                           ## 'Tensor' object has no attribute 'foo'
a.sum(axes=0)                                   ## sum()
torch.add(a)                                    ## add()
torch.sum()                                     ## sum()
a + 'x'                                         ## unsupported operand type(s) for +
a + None                                        ## unsupported operand type(s) for +
torch.exp(1.0)                                  ## exp(): argument 'input' (position 1) must be Tensor, not float
torch.exp([1.0])                                ## exp(): argument 'input' (position 1) must be Tensor, not list
torch.fft.fft(a, n=0)                           ## Invalid number of data points (0) specified
torch.fft.fft(a, norm='no')                     ## Invalid normalization mode: "no"
torch.fft.fft(a, dim=2)                         ## Dimension out of range (expected to be in range of [-2, 1], but got 2)
torch.fft.rfft(a + 0j)                          ## rfft expects a real input tensor, but got ComplexFloat
torch.fft.fftn(a, s=(1, 2, 3))                  ## Got shape with 3 values but input tensor only has 2 dimensions.
torch.fft.fft2(a, s=(2,))                       ## When given, dim and shape arguments must have the same length
torch.fft.fftn(a, dim=(0, 0))                   ## FFT dims must be unique
torch.fft.fft(a, out=a)                         ## fft expects a complex output tensor, but got Float
torch.stft(v, 2)                                ## stft requires the return_complex parameter be given for real inputs
torch.stft(v, 9, center=False, return_complex=True)  ## expected 0 < n_fft < 4, but got n_fft=9
torch.istft(a, 4)                               ## istft requires a complex-valued input tensor
torch.cov(a, correction=1.0)                    ## cov(): argument 'correction' must be int, not float
torch.signal.windows.hann(-1)                   ## general_cosine requires non-negative window length, got M=-1
a.unsqueeze(True)                               ## argument 'dim'
a.sum(1.5)                                      ## sum()
torch.sort(a, True)                             ## sort()
a.topk(2, True)                                 ## topk(): argument 'dim'
torch.kthvalue(a, True)                         ## kthvalue(): argument 'k'
torch.histogram(v[0], v[0].double())            ## input tensor and bins tensors should have the same dtype
torch.histogram(a, a)                           ## bins tensor should have one dimension, but got 2 dimensions
torch.histogram(v[:0], v[:0])                   ## bins tensor should have at least 1 element
torch.histogram(v, -1)                          ## bins must be > 0, but got -1
torch.histogram(a, 1, weight=v)                 ## weight tensor is provided it should have the same shape as the input tensor
torch.histogram(v, 1, weight=v.double())        ## input tensor and weight tensor should have the same dtype
torch.histogram(v, v, range=(0, 1))             ## received an invalid combination of arguments
torch.histogram(v, 2, range=(1.0, 0.0))         ## min should not exceed max, but got min 1 max 0
torch.histogram(v, 2, out=(v.double(), v))      ## input tensor and hist tensor should have the same dtype
torch.histogram(v, 2, out=(v, v.double()))      ## input tensor and bin_edges tensor should have the same dtype
torch.histogram(v + float('nan'), 2)            ## dimension 0's range [nan, nan] is not finite
torch.searchsorted(v, a, out=a)                 ## output tensor's dtype is wrong
torch.searchsorted(v + 0j, a + 0j)              ## not implemented for 'ComplexFloat'
torch.kthvalue(a[:, :0], 1, 1)                  ## Expected reduction dim 1 to have non-zero size.
torch.min(a, 0, out=(v, v))                     ## Expected out tensor to have dtype long int, but got float instead
torch.sort(a, out=(a, a))                       ## Expected out tensor to have dtype long int, but got float instead
torch.mode(a, out=v)                            ## argument 'out' must be tuple of Tensors, not Tensor
torch.max(a, dim=1, other=a)                    ## received an invalid combination of arguments
torch.quantile(a, 0.5, out=v[0].double())       ## out tensor must be same dtype as the input tensor
torch.all(a, 0, out=v.clone())                  ## all only supports bool tensor for result, got: Float
torch.unique(v[0], dim=0)                       ## Dimension specified as 0 but tensor has no dimensions
torch.nanmean(a, dtype=torch.int64)             ## nanmean(): could not infer output dtype.
torch.isin(k, True)                             ## Unsupported input type encountered for isin(): Bool
torch.add(k, k, alpha=1j)                       ## For integral input tensors, argument alpha must not be a floating
torch.add(a, a, alpha=1j)                       ## argument alpha must not be a complex number
torch.float_power(a, 2, out=a)                  ## the output given to float_power has dtype Float but
a.float_power_(2)                               ## the base given to float_power_ has dtype Float but
torch.lerp(a, a.double(), 0.5)                  ## expected dtype float for `end` but got dtype double
torch.lerp(k, k, 0.5)                           ## "lerp_kernel_scalar" not implemented for 'Long'
torch.lerp(k, k, k)                             ## "lerp_kernel_tensor" not implemented for 'Long'
a @ 2                                           ## unsupported operand type(s) for @
torch.linalg.matrix_power(a[:, :3], 2.5)        ## argument 'n'
torch.polygamma(1.5, v)                         ## argument 'n'
torch.linalg.vector_norm(a, dtype=torch.int32)  ## dtype should be floating point or complex, but got Int
torch.isposinf(a, out=a.clone())                ## isposinf does not support non-boolean outputs.
torch.heaviside(a, a.double())                  ## heaviside is not yet implemented for tensors with different dtypes.
torch.heaviside(a, a, out=a.double())           ## heaviside is not yet implemented for tensors with different dtypes.
torch.frexp(a, out=(a.double(), k.int()))       ## torch.frexp() expects mantissa to have dtype float but got double
torch.frexp(a, out=(a.clone(), k))              ## torch.frexp() expects exponent to have int dtype but got long int
torch.round(k, decimals=1)                      ## "round_cpu" not implemented for 'Long'
torch.pow(m, m)                                 ## "pow" not implemented for 'Bool'
torch.cumulative_trapezoid(v[0])                ## slice() cannot be applied to a 0-dim tensor.
torch.tril(a, out=a.double())                   ## Expected out tensor to have dtype float, but got double instead
torch.linalg.inv(a[:, :3], out=a.double())      ## Expected out tensor to have dtype float, but got double instead
torch.linalg.norm(a, out=k)                     ## linalg.norm expected out tensor dtype Float but got: Long
torch.linalg.pinv(a.half())                     ## linalg.pinv(Half{[3, 4]}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types
torch.linalg.pinv(a, out=k)                     ## linalg.pinv: Expected result to be safely castable from Float dtype, but got result with dtype Long
torch.tensordot(a, a, 2, out=a.double())        ## tensordot: Expected the output tensor to have dtype Float, but got an output tensor with dtype Double
torch.where(m, a, a, out=a.double())            ## Expected out type to be Float but got Double
torch.addmm(a, a, torch.ones(4, 4), beta=1j)    ## value cannot be converted to type float without overflow
torch.addr(a, a[:, 0], v, alpha=True)           ## Boolean alpha only supported for Boolean results.
torch.lu_unpack(a[:, :3], torch.tensor([0, 1, 2]).int())  ## pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csc(), torch.eye(2), torch.eye(2))  ## sampled_addmm: Expected result to have sparse csr layout, but got SparseCsc
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.eye(2), torch.eye(2), out=a)  ## sampled_addmm: Expected result to have sparse csr layout, but got Strided
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.eye(2).to_sparse(), a)  ## sampled_addmm: Expected mat1 to have strided layout, but got Sparse
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.eye(2), a[0])  ## sampled_addmm: Expected mat2 to be a matrix, got 1-D tensor
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.eye(2), a)  ## sampled_addmm: mat1 and mat2 shapes cannot be multiplied (2x2 and 3x4)
torch.sparse.sampled_addmm(torch.eye(3).to_sparse_csr(), torch.eye(3), a)  ## sampled_addmm: self.shape[-1] must match mat2.shape[-1]
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), a[:, :3], torch.eye(3))  ## sampled_addmm: self.shape[-2] must match mat1.shape[-2]
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.eye(2), torch.eye(2).double())  ## sampled_addmm: Expected mat1 and mat2 to have the same dtype, but got Float and Double
torch.sparse.sampled_addmm(torch.eye(2).double().to_sparse_csr(), torch.eye(2), torch.eye(2))  ## sampled_addmm: Expected mat1 and self to have the same dtype, but got Float and Double
torch.sparse.sampled_addmm(torch.eye(2).to_sparse_csr(), torch.eye(2), torch.eye(2), out=torch.eye(2).double().to_sparse_csr())  ## sampled_addmm: Expected result and self to have the same dtype, but got Double and Float
torch.linalg.norm(a, (1, 2))                    ## linalg_norm() received an invalid combination of arguments - got (Tensor, tuple)
torch.linalg.matrix_norm(a, [1])                ## linalg_matrix_norm() received an invalid combination of arguments - got (Tensor, list)
torch.quantile(a, [0.5])                        ## quantile() received an invalid combination of arguments - got (Tensor, list)
a.nanquantile("1")                              ## nanquantile() received an invalid combination of arguments - got (str)
torch.linalg.lu_solve(a[:, :3], torch.tensor([1, 7, 2]).int(), a)  ## Pivots given to lu_solve must all be smaller or equal to LU.size(-2).
torch.linalg.lu_solve(a[:, :3], torch.tensor([1, 2]).int(), a)  ## linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix
torch.einsum("i->i")                            ## einsum(): must specify the equation string and at least one operand
torch.nn.functional.elu_(a.requires_grad_() * 1, -1.0).sum().backward()  ## In-place elu backward calculation is triggered with a negative slope
torch.nn.functional.leaky_relu_(a.requires_grad_() * 1, -0.1).sum().backward()  ## In-place leakyReLu backward calculation is triggered with a negative slope
torch.cat(a)                                    ## cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor
a.to("cpu", torch.device("cpu"))                ## to() received an invalid combination of arguments - got (str, torch.device), but expected one of:
a.to(torch.float64, "cpu")                      ## got (torch.dtype, str)
a.to("cpu", device="cpu")                       ## got (str, device=str)
a.to(a, torch.float64)                          ## got (Tensor, torch.dtype)
a.to(torch.float64, True, True, True)           ## got (torch.dtype, bool, bool, bool)
a.to(copy=3)                                    ## got (copy=int, )
a.to(str)                                       ## got (type)
torch.nn.Linear(2, 2).to("cpu", 3)              ## got (str, int)
torch.kron(a, 1.5)                              ## kron(): argument 'other' (position 2) must be Tensor, not float
torch.cross(a, "x", 0)                          ## cross(): argument 'other' (position 2) must be Tensor, not str
torch.linalg.cross(a, None)                     ## linalg_cross(): argument 'other' (position 2) must be Tensor, not NoneType
torch.dist(a, 1)                                ## dist(): argument 'other' (position 2) must be Tensor, not int
torch.cholesky_solve(a, [1.0])                  ## cholesky_solve(): argument 'input2' (position 2) must be Tensor, not list
torch.prelu(a, 0.25)                            ## prelu(): argument 'weight' (position 2) must be Tensor, not float
a.reshape_as((4, 3))                            ## reshape_as(): argument 'other' (position 1) must be Tensor, not tuple
a.expand_as(4)                                  ## expand_as(): argument 'other' (position 1) must be Tensor, not int
a.masked_fill(1, 0.0)                           ## received an invalid combination of arguments - got (int, float)
a.add_("x")                                     ## add_(): argument 'other' (position 1) must be Tensor, not str
a.atan2_(None)                                  ## atan2_(): argument 'other' (position 1) must be Tensor, not NoneType
torch.neg(a.double(), out=v[:1].expand(3, 4))   ## more than one element of the written-to tensor refers to a single memory location
torch.add(a, 1j, out=v[:1].expand(3, 4))        ## more than one element of the written-to tensor refers to a single memory location
(lambda z: z.div_(z).sum().backward())(a.requires_grad_().exp())    ## is output 0 of Div, is at version 1; expected version 0
(lambda z: z.addcmul_(z, z).sum().backward())(a.requires_grad_() * 1)  ## is output 0 of Addcmul, is at version 1; expected version 0
(a.requires_grad_() * 1).set_(v).sum().backward()  ## derivative for set_ is not implemented
torch.nansum(a, 0, 1)                           ## nansum(): argument 'keepdim' (position 3) must be bool, not int
a.logsumexp(0, keepdim=1)                       ## logsumexp(): argument 'keepdim' must be bool, not int
torch.median(a, 0, 1)                           ## median(): argument 'keepdim' (position 3) must be bool, not int
a.nanmedian(0, "x")                             ## nanmedian(): argument 'keepdim' (position 2) must be bool, not str
torch.sort(a, 0, descending=1)                  ## sort() received an invalid combination of arguments - got (Tensor, int, descending=int)
torch.argsort(a, 0, None)                       ## argsort() received an invalid combination of arguments - got (Tensor, int, NoneType)
a.topk(2, largest=np.bool_(True))               ## topk(): argument 'largest' must be bool, not numpy.bool
torch.topk(a, 2, 1, True, 1)                    ## topk(): argument 'sorted' (position 5) must be bool, not int
torch.kthvalue(a, 1, 0, keepdim=None)           ## kthvalue(): argument 'keepdim' must be bool, not NoneType
torch.mode(a, 0, keepdim=1.0)                   ## mode(): argument 'keepdim' must be bool, not float
torch.std(a, 0, keepdim=1)                      ## std() received an invalid combination of arguments - got (Tensor, int, keepdim=int)
torch.linalg.svd(a, full_matrices=1)            ## linalg_svd(): argument 'full_matrices' must be bool, not int
torch.linalg.vector_norm(a, 2, 0, keepdim=1)    ## linalg_vector_norm(): argument 'keepdim' must be bool, not int
torch.cholesky_inverse(a[:, :3], 1)             ## cholesky_inverse(): argument 'upper' (position 2) must be bool, not int
a.allclose(a, equal_nan=1)                      ## allclose(): argument 'equal_nan' must be bool, not int
torch.searchsorted(v, a, right=1)               ## searchsorted() received an invalid combination of arguments - got (Tensor, Tensor, right=int)
torch.diag_embed(a, offset=True)                ## diag_embed(): argument 'offset' must be int, not bool
torch.diag_embed(a, dim1=1.5)                   ## diag_embed(): argument 'dim1' must be int, not float
torch.corrcoef([1.0])                           ## corrcoef(): argument 'input' (position 1) must be Tensor, not list
torch.flip("x", (0,))                           ## flip(): argument 'input' (position 1) must be Tensor, not str
torch.cov(a, aweights=[1])                      ## cov(): argument 'aweights' must be Tensor, not list
torch.mm(a, 1)                                  ## mm(): argument 'mat2' (position 2) must be Tensor, not int
a.mm("x")                                       ## mm(): argument 'mat2' (position 1) must be Tensor, not str
a.eq("x")                                       ## eq() received an invalid combination of arguments - got (str)
a.maximum(1)                                    ## maximum(): argument 'other' (position 1) must be Tensor, not int
torch.acos()                                    ## acos() missing 1 required positional arguments: "input"
a.neg(bogus=1)                                  ## TensorBase.neg() takes no keyword arguments
a.acos(1)                                       ## TensorBase.acos() takes no arguments (1 given)
torch.topk(a)                                   ## topk() missing 1 required positional arguments: "k"
torch.gather(a)                                 ## gather() missing 2 required positional argument: "dim", "index"
torch.gather(dim=0, index=k)                    ## gather() missing 3 required positional argument: "input", "dim", "index"
torch.heaviside(values=a)                       ## heaviside() missing 2 required positional argument: "input", "values"
torch.full((2,))                                ## full() missing 1 required positional arguments: "fill_value"
torch.full(fill_value=2)                        ## full() missing 2 required positional argument: "size", "fill_value"
torch.full_like()                               ## full_like() missing 2 required positional argument: "input", "fill_value"
torch.zeros_like()                              ## zeros_like() missing 1 required positional arguments: "input"
torch.range(5)                                  ## range() missing 1 required positional arguments: "end"
torch.linspace(0, 1)                            ## linspace() received an invalid combination of arguments - got (int, int)
type("A", (torch.FloatTensor,), {})             ## type 'torch.FloatTensor' is not an acceptable base type
a.as_subclass(3)                                ## cls must be a type (got int)
delattr(a, "data")                              ## Deleting tensor data is not allowed. Delete tensor instead!
delattr(a, "requires_grad")                     ## requires_grad must be a bool
delattr(a, "_backward_hooks")                   ## Deletion of _backwards_hooks not allowed!
delattr(a, "grad_fn")                           ## attribute 'grad_fn' of 'torch._C.TensorBase' objects is not writable
torch.cumsum(a, 0, 1)                           ## cumsum() takes 2 positional arguments but 3 were given
torch.cumsum(a, 0, bogus=1)                     ## cumsum() got an unexpected keyword argument 'bogus'
torch.cumsum(a, 0, input=a)                     ## cumsum() got multiple values for argument 'input'
a.sum(bogus=1)                                  ## sum() received an invalid combination of arguments - got (bogus=int, )
torch.cat([a, 1])                               ## expected Tensor as element 1 in argument 0, but got int
torch.logsumexp(a, ("x",))                      ## logsumexp(): argument 'dim' (position 2) must be tuple of ints, but found element of type str at pos 0
torch.cumsum(a, 2**70)                          ## Overflow when unpacking long long
a.cumsum_(2**70)                                ## Overflow when unpacking long long
torch.mvlgamma(p, 2**70)                        ## Overflow when unpacking long long
torch.cummax(a, 0, out="x")                     ## cummax(): argument 'out' must be tuple of Tensors, not str
torch.cummax(a, 0, out=(a,))                    ## expected tuple of 2 elements but got 1
torch.median(a, 0, out=(v,))                    ## expected tuple of 2 elements but got 1
torch.unsafe_chunk(a, 2, out=(a,))              ## unsafe_chunk() got an unexpected keyword argument 'out'
torch.expand_copy(a, (3, 4), out=a.double())    ## Expected out tensor to have dtype float, but got double instead
torch.nn.functional.layer_norm(a, ("x",))       ## layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, but found element of type str at pos 0
torch.nn.functional.layer_norm(a, (4,), weight=[1.0])  ## layer_norm(): argument 'weight' (position 3) must be Tensor, not list
torch.nn.functional.cross_entropy(a, a, weight=1)  ## cross_entropy_loss(): argument 'weight' (position 3) must be Tensor, not int
torch.nn.functional.conv2d(h, "x")              ## conv2d() received an invalid combination of arguments - got (Tensor, str)
torch.nn.functional.soft_margin_loss(a, a, reduction=None)  ## None is not a valid value for reduction
torch.var_mean(a, 0, bogus=1)                   ## var_mean() received an invalid combination of arguments - got (Tensor, int, bogus=int)
torch.dropout(a, 2.0, True)                     ## dropout probability has to be between 0 and 1, but got 2
torch.alpha_dropout(a, -0.5, False)             ## dropout probability has to be between 0 and 1, but got -0.5
torch.nn.functional.dropout(a, 2.0)             ## dropout probability has to be between 0 and 1, but got 2.0
torch.nn.Conv2d(3, 4)                           ## Conv2d.__init__() missing 1 required positional argument: 'kernel_size'
torch.nn.LazyConv1d(3)                          ## LazyConv1d.__init__() missing 1 required positional argument: 'kernel_size'
torch.nn.BatchNorm2d()                          ## _BatchNorm.__init__() missing 1 required positional argument: 'num_features'
torch.nn.TransformerEncoderLayer(4)             ## TransformerEncoderLayer.__init__() missing 1 required positional argument: 'nhead'
torch.special.i1(3)                             ## special_i1(): argument 'input' (position 1) must be Tensor, not int
"""


def cases() -> list[object]:
    made = []
    for line in TABLE.strip().splitlines():
        program, _, words = (part.strip() for part in line.partition("##"))
        made.append(pytest.param(program, words, id=program))
    return made


def put(t: object, index: object, value: object) -> None:
    t[index] = value  # type: ignore[index]


def twice(t: object) -> None:
    t.backward()  # type: ignore[attr-defined]
    t.backward()  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("program", "words"), cases())
def test_error(program: str, words: str) -> None:
    import copy

    arrays = {
        "a": data(3, 4),
        "p": abs(data(3, 4)) + 0.1,
        "v": data(4),
        "h": data(2, 3, 4),
        "k": data(3, 4, dtype="int64"),
        "m": data(3, 4, dtype="bool"),
        "i": np.array([0, 2]),
    }
    found, expected = evaluate(program, arrays, put=put, twice=twice, copy=copy)
    assert expected.error is not None, f"torch returns {expected.value!r}"
    assert words in str(expected.error), f"torch says: {expected.error}"
    assert_same_error(found, expected)
    assert words in str(found.error)


@pytest.mark.ours
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "complex64"])
def test_a_row_refuses_a_dtype_in_torch_words(dtype: str) -> None:
    category = dtypes.BY_NAME[dtype].category
    seen = 0
    for name, row in ROWS.items():
        if row.ops[category] or (row.promote == "int to float" and category < 2):
            continue
        space = "special." if name.startswith("special_") else ""
        arguments = ", ".join(["x"] * len(row.args))
        line = f"torch.{space}{name.removeprefix('special_')}({arguments})"
        found, expected = evaluate(line, {"x": np.ones(2, dtype)})
        if isinstance(expected.error, (AttributeError, TypeError)) or found.error is None:
            continue  # no public function of these operands, or one that takes more dtypes than torch's
        assert isinstance(found.error, type(expected.error)), line
        assert str(found.error) == str(expected.error), line
        seen += 1
    assert seen
