// The Python module whose import registers the ops.

#include <Python.h>

#include "kernels.h"
#include "search_kernels.h"

namespace {

PyObject* instruction_set(PyObject*, PyObject*) {
  return PyUnicode_FromString(foveal::kernels().name);
}

PyObject* multiplies_in_half_precision(PyObject*, PyObject*) {
  return PyBool_FromLong(foveal::half_products() != nullptr);
}

PyMethodDef methods[] = {
    {"instruction_set", instruction_set, METH_NOARGS, "The instruction set of the kernels in use."},
    {"multiplies_in_half_precision", multiplies_in_half_precision, METH_NOARGS,
     "Whether the kernels in use have products in bfloat16."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernels", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__kernels() { return PyModule_Create(&definition); }
